"""`python -m mutation`: try a sample of mutants and print how many the tests kill."""

import argparse
import json
import os
import shutil
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
#: What tests read beside the source.
COPIED = ["src", "tests", "benchmarks", "experiments", "docs", "pyproject.toml", "README.md"]
#: What comes of a mutant: a test fails, or none does, for a reason (or for none that is known).
OUTCOMES = ("killed", "equivalent", "speed", "open", "unexplained")
#: The share that tests have to kill, harmless ones counted as survivors.
_KILLED = 0.9


def main():
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--journal", type=Path, help="where trials are kept, and known ones found")
    asked = parser.parse_args()
    # Before numba is imported.
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        root = Path(folder).resolve()
        unwanted = shutil.ignore_patterns("__pycache__", "_build", ".hypothesis")
        for name in COPIED:
            copy = shutil.copy if (ROOT / name).is_file() else shutil.copytree
            copy(ROOT / name, root / name, **({} if copy is shutil.copy else {"ignore": unwanted}))
        sys.exit(_run(root, asked))


def _run(root, asked):
    from mutation import subjects
    from mutation.mutants import mutants_of, sampled
    from mutation.trials import try_all

    population = [mutant for file in subjects.TESTS for mutant in mutants_of(root, file)]
    chosen = sampled(population, asked.sample, asked.seed)
    reasons = tomllib.loads((HERE / "survivors.toml").read_text(encoding="utf-8"))
    known = {}
    if asked.journal is not None and asked.journal.exists():
        known = dict(map(json.loads, asked.journal.read_text().splitlines()))

    def report(mutant, killed):
        was, became = mutant.change((root / mutant.file).read_text(encoding="utf-8"))
        reason = reasons.get(mutant.file, {}).get(became or f"without {was}", "unexplained")
        outcome = "killed" if killed else reason.partition(":")[0]
        known[mutant.name] = outcome
        if asked.journal is not None:
            with asked.journal.open("a") as journal:
                print(json.dumps([mutant.name, outcome]), file=journal)
        if not killed:
            where = f"{mutant.file}:{mutant.line} {outcome}"
            print(f"{where}\n  - {was}\n  + {became}", file=sys.stderr, flush=True)

    todo = [mutant for mutant in chosen if mutant.name not in known]
    if todo:
        try_all(root, todo, report)
    return _printed([(mutant.file, known[mutant.name]) for mutant in chosen], population)


def _printed(trials, population):
    """Print what came of the mutants of every file; 1 if too few were killed or one lives unexplained."""
    counts = Counter(trials) + Counter(("all", outcome) for _, outcome in trials)
    mutants = Counter(mutant.file for mutant in population) + Counter({"all": len(population)})
    print(f"{'file':<26}{'mutants':>9}" + "".join(f"{outcome:>13}" for outcome in OUTCOMES))
    for file, number in mutants.items():
        cells = "".join(f"{counts[file, outcome]:>13}" for outcome in OUTCOMES)
        print(f"{file.removeprefix('src/hullcal/'):<26}{number:>9}{cells}")
    from scipy.stats import binomtest

    killed = counts["all", "killed"]
    low, high = binomtest(killed, len(trials)).proportion_ci()
    share = killed / len(trials)
    print(f"{killed} of {len(trials)} killed, {share:.1%} (95 % interval {low:.1%} to {high:.1%})")
    return int(counts["all", "unexplained"] > 0 or share < _KILLED)


if __name__ == "__main__":
    main()
