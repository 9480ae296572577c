"""`python -m lacuner`, the same as `lacuner`."""

from lacuner.cli.main import main

main()
