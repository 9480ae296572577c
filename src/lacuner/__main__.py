"""`python -m lacuner` runs the same command as `lacuner`, `torchrun -m lacuner` runs it in several processes."""

from lacuner.cli.main import main

main(join=True)
