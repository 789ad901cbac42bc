"""Run the benchmarks: all sections in order, or those named on the command line."""

import argparse
import importlib
import platform
import time

import numba
import numpy
import scipy

from benchmarks.tables import Target, print_targets

SECTIONS = ("speed", "search", "budget", "steady", "growth", "sizes", "limits", "startup")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument(
        "--full", action="store_true", help="more data sets and sizes in `budget` (an hour)"
    )
    arguments = parser.parse_args()
    unknown = set(arguments.sections) - set(SECTIONS)
    if unknown:
        parser.error(
            f"unknown {', '.join(sorted(unknown))}; the sections are {', '.join(SECTIONS)}"
        )
    print(
        f"Python {platform.python_version()}, numpy {numpy.__version__}, "
        f"scipy {scipy.__version__}, numba {numba.__version__}, {platform.machine()}"
    )
    targets: list[Target] = []
    for name in arguments.sections or SECTIONS:
        section = importlib.import_module(f"benchmarks.{name}")
        start = time.perf_counter()
        targets += section.run(full=True) if name == "budget" and arguments.full else section.run()
        print(f"({name}: {time.perf_counter() - start:.0f} s)", flush=True)
    if targets:
        missed = [target for target in targets if not target.reached]
        print(f"\n{len(targets) - len(missed)} of {len(targets)} targets reached")
        print_targets(missed)


if __name__ == "__main__":
    main()
