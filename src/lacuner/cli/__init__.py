"""The command line: one module a command, nothing but arguments, progress and printing."""
