"""Long runs of what the tests do in short: `python -m hardening kills --times 50`, from `tests/`."""

import argparse
import functools
import sys
import tempfile
from pathlib import Path

say = functools.partial(print, flush=True)


def main(arguments=None):
    """Run what was asked for; 1 if something was not as it should be."""
    from hardening import kills

    parser = argparse.ArgumentParser(prog="python -m hardening", description=__doc__)
    commands = parser.add_subparsers(required=True)
    killing = commands.add_parser("kills", help="signals at random moments, resumed to the end")
    killing.set_defaults(run=_kills)
    killing.add_argument("--times", type=int, default=50)
    killing.add_argument("--seed", type=int, default=0)
    killing.add_argument("--run", dest="runs", action="append", choices=kills.RUNS)
    signals = [number.name for number in kills.SIGNALS]
    killing.add_argument("--signal", dest="signals", action="append", choices=signals)
    soaking = commands.add_parser("soak", help="memory, files and threads of one process")
    soaking.set_defaults(run=_soak)
    soaking.add_argument("--tests", type=int, default=10_000)
    soaking.add_argument("--warm-up", type=int, default=1_000)
    faulting = commands.add_parser("faults", help="every call that writes fails once")
    faulting.set_defaults(run=_faults)
    faulting.add_argument("--only", action="append", help="a subject; all of them if left out")
    given = parser.parse_args(arguments)
    return given.run(given)


def _kills(given):
    from hardening import kills

    signals = tuple(s for s in kills.SIGNALS if not given.signals or s.name in given.signals)
    runs = tuple(given.runs or kills.USUAL)
    with tempfile.TemporaryDirectory() as place:
        found = kills.kill_often(
            given.times, Path(place), seed=given.seed, runs=runs, signals=signals, say=say
        )
    for (name, number, when), count in sorted(found.hits.items()):
        print(f"{name:10} {number:8} {when:15} {count:4}")
    print(
        f"{found.hits.total()} signals, {found.finished} runs finished as if undisturbed, "
        f"{found.orphans} temporary files of killed programs left"
    )
    return 0


def _soak(given):
    from hardening.soak import soak

    first, last = given.warm_up, given.tests
    levels = soak([*range(first, last, max(1, (last - first) // 9)), last], say=say)
    change = levels[last].since(levels[first])
    print(
        f"{last} tests, of which {first} to warm up: {change.memory:+.2f} MB, "
        f"{change.files:+d} open files, {change.threads:+d} threads"
    )
    return int(change.memory > 20 or change.files > 0 or change.threads > 0)


def _faults(given):
    from hardening.disks import sweep, under_a_limit
    from hardening.faulty import FAULTS
    from hardening.subjects import SUBJECTS

    trials = {}
    for name in given.only or SUBJECTS:
        for old in (False, True):
            for fault in FAULTS:
                over = " over an older file" * old
                trials[f"{name}{over}, {fault}"] = functools.partial(sweep, name, fault, old=old)
        trials[f"{name}, limits on the size of files"] = functools.partial(under_a_limit, name)
    failures = 0
    for what, trial in trials.items():
        try:
            with tempfile.TemporaryDirectory() as place:
                say(f"{what}: {trial(place=Path(place))}")
        except AssertionError as error:
            failures += 1
            say(f"FAILED {error}")
    print(f"{len(trials)} trials; {failures} were not as they should be")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
