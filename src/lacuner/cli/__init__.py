"""The command line: one module per command, with its arguments, progress and printing, and nothing else."""
