"""`python -m mutation`: try a sample of mutants and print how many the tests kill."""

import argparse
import json
import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
#: What tests read beside the source.
COPIED = ["src", "tests", "benchmarks", "experiments", "docs", "pyproject.toml", "README.md"]
#: Reasons to live.
HARMLESS = ("equivalent", "speed")
#: The share that tests have to kill, harmless ones counted as survivors.
_KILLED = 0.9
#: Changes of arithmetic into operations on bits, most of which floats refuse.
BITWISE = ("Shift", "BitOr", "BitAnd", "BitXor")


def main():
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--file", action="append", help="only mutants of this file; repeat")
    parser.add_argument("--journal", type=Path, help="where trials are kept, and known ones found")
    parser.add_argument(
        "--again", action="store_true", help="only what survived in the journal and should not have"
    )
    asked = parser.parse_args()
    # Before numba is imported.
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        root = Path(folder).resolve()
        _copy(root)
        sys.exit(_run(root, asked))


def _copy(root):
    unwanted = shutil.ignore_patterns("__pycache__", "_build", ".hypothesis")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=unwanted)
        else:
            shutil.copy(ROOT / name, root / name)


def _run(root, asked):
    from mutation import subjects
    from mutation.mutants import mutants_of, sampled

    population = [mutant for file in subjects.TESTS for mutant in mutants_of(root, file)]
    chosen = sampled(population, asked.sample, asked.seed)
    if asked.file:
        chosen = [mutant for mutant in chosen if mutant.file in asked.file]
    known, reasons = _read(asked.journal), _reasons()
    todo = [mutant for mutant in chosen if _key(mutant) not in known]
    if asked.again:
        lived = [mutant for mutant in chosen if known.get(_key(mutant)) == "survived"]
        todo = [mutant for mutant in lived if _reason(mutant, root, reasons) not in HARMLESS]

    def report(mutant, outcome):
        known[_key(mutant)] = outcome
        before, after = mutant.change((root / mutant.file).read_text(encoding="utf-8"))
        if asked.journal is not None:
            with asked.journal.open("a") as journal:
                print(json.dumps([_key(mutant), outcome, before, after]), file=journal)
        if outcome == "survived":
            where = f"{mutant.file}:{mutant.line}"
            print(f"{where}\n  - {before}\n  + {after}", file=sys.stderr, flush=True)

    if todo:
        _try(root, todo, report)
    trials = []
    for mutant in chosen:
        outcome = known.get(_key(mutant))
        if outcome is not None:
            lived = outcome == "survived"
            trials.append((mutant, outcome, _reason(mutant, root, reasons) if lived else None))
    _print(trials, population)
    unexplained = [m for m, outcome, reason in trials if outcome == "survived" and reason is None]
    killed = sum(outcome == "killed" for _, outcome, _ in trials)
    too_few = killed < _KILLED * len(trials)
    return 1 if unexplained or too_few or len(trials) < len(chosen) else 0


def _try(root, mutants, report):
    import pytest

    from mutation import subjects
    from mutation.trials import OPTIONS, Trials

    paths = [str(root / each) for each in ("src", ".", "tests")]
    sys.path[:0] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.chdir(root)
    tests = [file for file in subjects.files_of_tests() if (root / file).exists()]
    code = pytest.main(
        [*OPTIONS, f"--rootdir={root}", "--no-header", *tests],
        plugins=[Trials(root, mutants, report)],
    )
    if code not in (0, 1):
        raise SystemExit(f"pytest ended with {code}")


def _key(mutant):
    return f"{mutant.file} {mutant.operator} {mutant.occurrence}"


def _read(journal):
    if journal is None or not journal.exists():
        return {}
    rows = map(json.loads, journal.read_text().splitlines())
    return {key: outcome for key, outcome, *_ in rows}


def _reasons():
    entries = tomllib.loads((HERE / "survivors.toml").read_text(encoding="utf-8"))["survivor"]
    return {(e["file"], e["was"], e["became"]): e["reason"].partition(":")[0] for e in entries}


def _reason(mutant, root, reasons):
    change = mutant.change((root / mutant.file).read_text(encoding="utf-8"))
    return reasons.get((mutant.file, *change))


def _print(trials, population):
    print(
        f"{'file':<26}{'mutants':>9}{'tried':>7}{'killed':>8}{'equivalent':>12}{'speed':>7}{'open':>6}"
    )
    for file in dict.fromkeys(mutant.file for mutant in population):
        own = [trial for trial in trials if trial[0].file == file]
        print(_row(file.removeprefix("src/hullcal/"), own, sum(m.file == file for m in population)))
    print(_row("all", trials, len(population)))
    for what, some in (
        ("all", trials),
        ("but those of bits", [t for t in trials if not any(b in t[0].operator for b in BITWISE)]),
    ):
        killed = sum(outcome == "killed" for _, outcome, _ in some)
        harmless = sum(o == "survived" and r in HARMLESS for _, o, r in some)
        print(f"{what}: {_rate(killed, len(some))}")
        print(
            f"  without equivalent ones and those of speed: {_rate(killed, len(some) - harmless)}"
        )


def _row(name, trials, n_mutants):
    killed = sum(outcome == "killed" for _, outcome, _ in trials)
    reasons = [reason for _, outcome, reason in trials if outcome == "survived"]
    harmless = [reasons.count(each) for each in HARMLESS]
    cells = [killed, *harmless, len(reasons) - sum(harmless)]
    numbers = "".join(f"{n:>{w}}" for n, w in zip(cells, (8, 12, 7, 6), strict=True))
    return f"{name:<26}{n_mutants:>9}{len(trials):>7}{numbers}"


def _rate(killed, n):
    """The share with its Clopper–Pearson interval."""
    from scipy.stats import binomtest

    if n == 0:
        return "none"
    low, high = binomtest(killed, n).proportion_ci()
    return f"{killed} of {n} killed, {killed / n:.1%} (95 % interval {low:.1%} to {high:.1%})"


if __name__ == "__main__":
    main()
