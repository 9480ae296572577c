"""`python -m lacuner` runs the same command as `lacuner`."""

from lacuner.cli.main import main

main()
