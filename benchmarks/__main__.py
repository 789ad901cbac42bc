"""Run the benchmarks: all sections in order, or those named on the command line."""

import argparse
import importlib
import platform
import time

import numba
import numpy
import scipy

from benchmarks.measuring import Target, print_targets

SECTIONS = ("speed", "truth", "search", "budget", "steady", "growth", "sizes", "startup")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--full", action="store_true", help="more data sets in `budget` (an hour)")
    given = parser.parse_args()
    if unknown := set(given.sections) - set(SECTIONS):
        parser.error(f"unknown {', '.join(sorted(unknown))}; choose from {', '.join(SECTIONS)}")
    print(
        f"Python {platform.python_version()}, numpy {numpy.__version__}, "
        f"scipy {scipy.__version__}, numba {numba.__version__}, {platform.machine()}"
    )
    targets: list[Target] = []
    for name in given.sections or SECTIONS:
        section = importlib.import_module(f"benchmarks.{name}")
        start = time.perf_counter()
        found = section.run(full=True) if name == "budget" and given.full else section.run()
        print_targets(found)
        targets += found
        print(f"({name}: {time.perf_counter() - start:.0f} s)", flush=True)
    missed = [target for target in targets if not target.reached]
    print(f"\n{len(targets) - len(missed)} of {len(targets)} targets reached")
    print_targets(missed)


if __name__ == "__main__":
    main()
