"""Long runs of what the tests do in short: `PYTHONPATH=tests python -m hardening kills --times 50`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; 1 if something was not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m hardening", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    killing = commands.add_parser("kills", help="signals at random moments, resumed to the end")
    killing.add_argument("--times", type=int, default=50)
    killing.add_argument("--seed", type=int, default=0)
    killing.add_argument("--run", action="append", help="simulate, test or 'small study'; repeat")
    killing.add_argument("--signal", action="append", help="SIGKILL, SIGTERM or SIGINT; repeat")
    soaking = commands.add_parser("soak", help="memory, files and threads of one process")
    soaking.add_argument("--tests", type=int, default=10_000)
    soaking.add_argument("--warm-up", type=int, default=1_000)
    faulting = commands.add_parser("faults", help="every call that writes fails once")
    faulting.add_argument("--only", action="append", help="a subject; all of them if left out")
    given = parser.parse_args(arguments)
    return {"kills": _kills, "soak": _soak, "faults": _faults}[given.command](given)


def _kills(given: argparse.Namespace) -> int:
    from hardening import kills

    signals = {number.name: number for number in kills.SIGNALS}
    runs = _known("--run", given.run, kills.RUNS) or kills.USUAL
    chosen = tuple(signals[name] for name in _known("--signal", given.signal, signals) or signals)
    with tempfile.TemporaryDirectory() as place:
        found = kills.kill_often(
            given.times, Path(place), seed=given.seed, runs=runs, signals=chosen, say=_say
        )
    for (name, number, when), count in sorted(found.hits.items()):
        print(f"{name:10} {number:8} {when:15} {count:4}")
    print(
        f"{found.total} signals, {found.finished} runs finished as if undisturbed, "
        f"{found.orphans} temporary files of killed programs left"
    )
    return 0


def _known(option: str, names: list[str] | None, all_of_them: Iterable[str]) -> tuple[str, ...]:
    """The names, or the end of the program at one that nobody knows."""
    for name in names or ():
        if name not in all_of_them:
            sys.exit(f"`{option}` must be one of {', '.join(all_of_them)}; got {name!r}.")
    return tuple(names or ())


def _soak(given: argparse.Namespace) -> int:
    from hardening.soak import soak

    first, last = given.warm_up, given.tests
    found = soak([*range(first, last, max(1, (last - first) // 9)), last], say=_say)
    change = found.change(first, last)
    print(
        f"{last} tests, of which {first} to warm up: {change.memory:+.2f} MB, "
        f"{change.files:+d} open files, {change.threads:+d} threads"
    )
    return int(change.memory > 20 or change.files > 0 or change.threads > 0)


def _faults(given: argparse.Namespace) -> int:
    from hardening.limits import limited
    from hardening.sweep import every, sweep

    failures = points = 0
    for name, fault, old in every():
        if given.only and name not in given.only:
            continue
        with tempfile.TemporaryDirectory() as place:
            try:
                found = sweep(name, fault, Path(place), old=old)
            except AssertionError as error:
                failures += 1
                _say(f"FAILED {error}")
                continue
        points += found.points
        over = " over an older file" if old else ""
        _say(f"{name}{over}, {fault}: {found.points} calls, {found.errors} errors")
    with tempfile.TemporaryDirectory() as place:
        try:
            for line in limited(Path(place)):
                _say(line)
        except AssertionError as error:
            failures += 1
            _say(f"FAILED {error}")
    print(
        f"{points} calls failed, each in a run of its own; {failures} sweeps and disks were not as "
        "they should be"
    )
    return int(failures > 0)


def _say(words: str) -> None:
    print(words, flush=True)


if __name__ == "__main__":
    sys.exit(main())
