"""`python -m fuzzing`: try many inputs and print what came of them."""

import argparse
import sys
from collections import Counter

from fuzzing.confined import GOOD, run

#: How many of the inputs each room gets.
SHARES = {"readers": 0.6, "command_line": 0.2, "measures": 0.2}


def main():
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", choices=SHARES, action="append", help="only this one; repeat")
    parser.add_argument("--only", type=int, action="append", help="only this number; repeat")
    asked = parser.parse_args()
    rooms = asked.room or [*SHARES]
    total = sum(SHARES[room] for room in rooms)
    faults = 0
    for room in rooms:
        numbers = asked.only or range(round(asked.inputs * SHARES[room] / total))
        faults += _tried(room, asked.seed, numbers, shown=asked.only is not None)
    sys.exit(1 if faults else 0)


def _tried(room, seed, numbers, *, shown):
    """Try a room's inputs, print its table and every fault, and count these."""
    counts = Counter()
    for report in run(room, seed, numbers):
        for kind in (report["kind"], "all"):
            counts[kind, report["outcome"]] += 1
        if shown or report["outcome"] not in GOOD:
            print(f"{room} {report}", file=sys.stderr, flush=True)
    outcomes = sorted({outcome for _, outcome in counts})
    print(f"\n{room}, seed {seed}")
    print(f"{'':<32}" + "".join(f"{outcome:>20}" for outcome in outcomes))
    for kind in dict.fromkeys(kind for kind, _ in sorted(counts, key=lambda key: key[0] == "all")):
        cells = (counts[kind, outcome] for outcome in outcomes)
        print(f"{kind:<32}" + "".join(f"{cell:>20}" for cell in cells), flush=True)
    return sum(counts["all", outcome] for outcome in outcomes if outcome not in GOOD)


if __name__ == "__main__":
    main()
