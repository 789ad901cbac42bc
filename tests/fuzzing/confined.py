"""Who tries the inputs: a process with limits, so that a crash or a hang has a number.

`run` starts the process and reads its lines; the process is this file, started as a program.
"""

import contextlib
import importlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOMS = ("readers", "command_line", "measures", "control")
#: Seconds of one input: those the processor may take, and those after which its process is ended.
BUSY, PATIENCE = 10, 120
#: Bytes of memory beyond those that the warm program has.
MEMORY = 10**9
#: What may come of an input: that it worked, or a refusal. All else is a fault.
GOOD = ("read", "done", "refused", "refused for memory")

_QUIET = {
    # One thread each: address space that is reserved for others would count against the limit.
    **dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    **{"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system", "HULLCAL_DEBUG": "1"},
    # Loops that are not compiled take so long that they would count as slow inputs.
    "NUMBA_DISABLE_JIT": "0",
}


def run(room, seed, numbers, *, patience=PATIENCE):
    """Try inputs; for each a dictionary with its `number`, `kind`, `outcome` and `said`.

    An input depends on the room, the seed and its number alone; after `patience` seconds it hangs.
    """
    left = list(numbers)
    while left:
        before = len(left)
        for report in _reports(room, seed, left, patience):
            if "begun" not in report:
                left = left[left.index(report["number"]) + 1 :]
                yield report
        if len(left) == before:
            raise RuntimeError(f"the process of {room} ended before input {left[0]}")


def _reports(room, seed, numbers, patience):
    """Lines of one process, which ends with the first input that kills it."""
    command = [sys.executable, "-X", "faulthandler", "-m", "fuzzing.confined", room, str(seed)]
    paths = [str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | _QUIET | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        tempfile.TemporaryFile() as stacks,
        subprocess.Popen(command, stderr=stacks, env=environment, **pipes) as process,
    ):
        threading.Thread(target=_tell, args=(process, numbers), daemon=True).start()
        lines = queue.SimpleQueue()
        threading.Thread(target=_listen, args=(process, lines), daemon=True).start()
        begun, left, outcome = {}, 300, "crash"  # seconds to compile and to warm up
        while True:
            try:
                line = lines.get(timeout=left)
            except queue.Empty:
                process.send_signal(signal.SIGABRT)  # which makes it say where it is
                outcome, left = "hang", 30
                continue
            if line is None:
                break
            report = json.loads(line)
            begun, left = report if "begun" in report else {}, patience
            yield report
        code = process.wait()
        stacks.seek(0)
        said = stacks.read().decode("utf-8", "replace").partition("\nExtension modules")[0]
        where = said[-3000:]  # its own thread comes last
    if begun:
        said = f"exit code {code}: {where}"
        yield {"number": begun["begun"], "kind": begun["kind"], "outcome": outcome, "said": said}
    elif code:
        raise RuntimeError(f"the process of {room} ended with {code}: {where}")


def _tell(process, numbers):
    with contextlib.suppress(OSError):
        process.stdin.write(json.dumps(numbers))
        process.stdin.close()


def _listen(process, lines):
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def outcome_of(module, seed, number):
    """Try one input here, and say what came of it."""
    import numpy as np

    from hullcal import HullcalWarning, InvalidInputError

    room = module.__name__.rpartition(".")[2]
    rng = np.random.default_rng([seed, ROOMS.index(room), number])
    kind, said = module.kind_of(number), ""
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            # Our own notes are meant; those of arithmetic are faults.
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", HullcalWarning)
            outcome = module.attempt(number, rng)
    except InvalidInputError as error:
        short = isinstance(error.__cause__, MemoryError)
        outcome = "refused for memory" if short else "refused"
        said = str(error)
    except BaseException as error:
        outcome = "fault"
        trace = traceback.extract_tb(error.__traceback__)
        where = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in trace[-4:]]
        said = f"{type(error).__name__}: {str(error)[:300]} at {' '.join(where)}"
    busy = time.process_time() - begin
    if busy > BUSY and outcome in GOOD:
        outcome, said = "slow", f"{busy:.0f} s; {said}"
    return {"number": number, "kind": kind, "outcome": outcome, "said": said, "seconds": busy}


def _limit_memory():
    """Let the process have no more than so much beyond what it has; where the system can."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError):
        return
    allowed = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _work(room, seed):
    numbers = json.loads(sys.stdin.read())
    # Whatever is printed on the way must not come between the lines.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    module = importlib.import_module(f"fuzzing.{room}")
    module.warm_up()
    _limit_memory()
    for number in numbers:
        begun = {"begun": number, "kind": module.kind_of(number)}
        print(json.dumps(begun), file=out, flush=True)
        print(json.dumps(outcome_of(module, seed, number)), file=out, flush=True)


if __name__ == "__main__":
    _work(sys.argv[1], int(sys.argv[2]))
