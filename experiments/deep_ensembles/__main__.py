"""Train the networks of the paper's Table 1, test them, and print the table beside the paper's.

    python -m experiments.deep_ensembles                      # all that can be had without your help
    python -m experiments.deep_ensembles bacteria --rows 200  # a trial on a few rows
    python -m experiments.deep_ensembles caltech256_mob --path caltech256_mob=FOLDER
    python -m experiments.deep_ensembles caltech256_mob --download caltech256

Networks that are trained and tests that are done are kept, so that a run which was stopped goes on
where it was.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from experiments.deep_ensembles import classifiers, image_sets, own_sequences, table
from experiments.deep_ensembles.downloads import DownloadError, cache_folder
from experiments.deep_ensembles.rows import SETTINGS, rows
from experiments.deep_ensembles.tasks import TASKS, Options
from hullcal import InvalidInputError


def main(arguments: list[str] | None = None) -> int:
    """Run the tasks one after the other."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.deep_ensembles",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    parser.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="TASK=PATH",
        help=f"data of your own: a folder of images, or a file of sequences. {own_sequences.FORMS}",
    )
    parser.add_argument(
        "--download",
        action="append",
        default=[],
        metavar="DATA",
        help="fetch the images of caltech101 or caltech256; needs torchvision (pip install torchvision)",
    )
    parser.add_argument("--rows", type=int, help="rows to hold out, for a trial")
    parser.add_argument("--end-to-end", action="store_true", help="train the trunk on images too")
    parser.add_argument("--device", default="cpu", help="where to train, e.g. cuda")
    parser.add_argument("--jobs", type=int, default=-1, help="processes, threads; -1 for all cores")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder for the tables as CSV")
    parser.add_argument("--work", type=Path, help="folder for predictions; else the user's cache")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.tasks if name not in TASKS]
    if unknown:
        parser.error(f"there is no task {unknown[0]!r}; choose from {', '.join(TASKS)}")
    paths = dict(pair.partition("=")[::2] for pair in given.path)
    for name, path in paths.items():
        if name not in TASKS or not path:
            parser.error(f"--path takes TASK=PATH with a task of {', '.join(TASKS)}; got {name!r}")
    if given.rows is not None and given.rows < 20:
        parser.error(f"--rows must be 20 or more; got {given.rows}")
    named = image_sets.paths(given.download) | {name: Path(path) for name, path in paths.items()}
    options = Options(named, given.rows, given.end_to_end, given.seed)
    names = given.tasks or [
        name for name, task in TASKS.items() if task.at_hand or name in options.paths
    ]
    for name in names if given.end_to_end else ():
        if TASKS[name].architecture == "--":
            parser.error(f"--end-to-end trains a trunk that sees images; {name} has none")
        if not name.startswith("cifar10") and name not in options.paths:
            parser.error(f"--end-to-end needs the images: --path {name}=FOLDER, or --download")
    work = given.work or cache_folder() / "deep_ensembles"
    try:
        for name in given.download:
            image_sets.fetch(name)
        results = [rows_of(name, options, work, given.jobs, given.device) for name in names]
    except (InvalidInputError, DownloadError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    for place, setting in enumerate(SETTINGS):
        lines = [line for found in results for line in found[place]]
        name = f"table1_B{setting.n_bins}_D{setting.n_resamples}"
        table.show(lines, f"B = {setting.n_bins}, D = {setting.n_resamples}, level .05")
        if given.out is not None:
            table.write(lines, given.out / f"{name}.csv")
            table.write_beside(lines, given.out / f"{name}.csv")
    left_out = [name for name, task in TASKS.items() if name not in names and not task.at_hand]
    if left_out and not given.tasks:
        print(f"\nleft out, since their data must be had first: {', '.join(left_out)}")
    return 0


def rows_of(
    name: str, options: Options, work: Path, n_jobs: int, device: str
) -> list[list[dict[str, Any]]]:
    """Rows of one task, for every setting."""
    task = TASKS[name]
    began = time.perf_counter()
    folder = classifiers.learn(task, options, work, n_jobs=n_jobs, device=device)
    learnt = time.perf_counter()
    place = {"dataset": task.dataset, "architecture": task.architecture}
    by_kind = [
        rows(kind, folder, SETTINGS, n_jobs=n_jobs, seed=options.seed) for kind in classifiers.KINDS
    ]
    found = [[place | line for line in lines] for lines in zip(*by_kind, strict=True)]
    print(
        f"{name}: {learnt - began:.0f} s for networks, {time.perf_counter() - learnt:.0f} s for tests",
        flush=True,
    )
    return found


if __name__ == "__main__":
    sys.exit(main())
