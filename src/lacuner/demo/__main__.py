"""`python -m lacuner.demo FOLDER [SEED]`: write the demo corpus."""

import sys

from lacuner.demo.build import write_demo


def main(args: list[str]) -> int:
    if len(args) not in (1, 2) or args[0].startswith("-") or not all(arg.isdecimal() for arg in args[1:]):
        sys.stderr.write("usage: python -m lacuner.demo FOLDER [SEED]\n")
        return 2
    for name, path in write_demo(args[0], *map(int, args[1:])).items():
        sys.stdout.write(f"{name}: {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
