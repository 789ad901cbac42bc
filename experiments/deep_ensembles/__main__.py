"""Train the networks of the paper's Table 1, test them, and print the table beside the paper's.

    python -m experiments.deep_ensembles                      # all that can be had without your help
    python -m experiments.deep_ensembles bacteria --rows 200  # a trial on a few rows
    python -m experiments.deep_ensembles caltech256_mob --path caltech256_mob=FOLDER

Networks that are trained and tests that are done are kept, so that a run which was stopped goes on
where it was.
"""

import sys
import time
from pathlib import Path

from experiments import command_line
from experiments.deep_ensembles import sequences, table, training
from experiments.deep_ensembles.downloads import DownloadError, cache_folder
from experiments.deep_ensembles.tasks import TASKS, Options
from experiments.tables import Rows, in_words
from hullcal import InvalidInputError


def main(arguments: list[str] | None = None) -> int:
    """Run the tasks one after the other."""
    parser = command_line("experiments.deep_ensembles", __doc__)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    parser.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="TASK=PATH",
        help=f"data of your own: a folder of images, or a file of sequences. {sequences.FORMS}",
    )
    parser.add_argument("--rows", type=int, help="rows to hold out, for a trial")
    parser.add_argument("--end-to-end", action="store_true", help="train the trunk on images too")
    parser.add_argument("--device", default="cpu", help="where to train, e.g. cuda")
    parser.add_argument("--jobs", type=int, default=-1, help="processes, threads; -1 for all cores")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="folder for the tables as CSV")
    parser.add_argument("--work", type=Path, help="folder for predictions; else the user's cache")
    given = parser.parse_args(arguments)
    paths = dict(pair.partition("=")[::2] for pair in given.path)
    for name in (*given.tasks, *paths):
        if name not in TASKS or paths.get(name) == "":
            parser.error(
                f"unknown task, or no path for it: {name!r}; choose from {', '.join(TASKS)}"
            )
    if given.rows is not None and given.rows < 20:
        parser.error(f"--rows must be 20 or more; got {given.rows}")
    at_hand = [name for name, task in TASKS.items() if task.at_hand or name in paths]
    names = given.tasks or at_hand
    for name in names if given.end_to_end else ():
        if TASKS[name].architecture == "--":
            parser.error(f"--end-to-end trains a trunk that sees images; {name} has none")
        if not name.startswith("cifar10") and name not in paths:
            parser.error(f"--end-to-end needs the images: --path {name}=FOLDER")
    places = {name: Path(path) for name, path in paths.items()}
    options = Options(places, given.rows, given.end_to_end, given.seed)
    work = given.work or cache_folder() / "deep_ensembles"
    try:
        results = [rows_of(name, options, work, given.jobs, given.device) for name in names]
    except (InvalidInputError, DownloadError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    for place, setting in enumerate(table.SETTINGS):
        lines = [line for found in results for line in found[place]]
        table.show(lines, f"B = {setting.n_bins}, D = {setting.n_resamples}, level .05")
        if given.out is not None:
            name = f"table1_B{setting.n_bins}_D{setting.n_resamples}.csv"
            table.write(lines, given.out / name)
    left_out = [name for name in TASKS if name not in names]
    if left_out and not given.tasks:
        print(f"\nleft out, since their data must be had first: {', '.join(left_out)}")
    return 0


def rows_of(name: str, options: Options, work: Path, n_jobs: int, device: str) -> list[Rows]:
    """Rows of one task, for every setting."""
    task = TASKS[name]
    began = time.perf_counter()
    folder = training.learn(task, options, work, n_jobs=n_jobs, device=device)
    learnt = time.perf_counter()
    place = {"dataset": task.dataset, "architecture": task.architecture}
    by_kind = [
        table.rows(kind, folder, table.SETTINGS, n_jobs=n_jobs, seed=options.seed)
        for kind in training.KINDS
    ]
    found = [[place | line for line in lines] for lines in zip(*by_kind, strict=True)]
    times = in_words(learnt - began), in_words(time.perf_counter() - learnt)
    print(f"{name}: {times[0]} for networks, {times[1]} for tests", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
