"""Where the program begins: a signal ends it with its code also while modules load."""

import os
import signal

#: Exit code and word of a signal, as in `hullcal.cli.running`, which takes time to load.
_ENDS = {signal.SIGINT: (130, "interrupted"), signal.SIGTERM: (4, "stopped by a signal")}


def _end(number: int, frame: object) -> None:
    code, word = _ENDS[signal.Signals(number)]
    os.write(2, f"hullcal: {word}\n".encode())
    os._exit(code)


def main() -> None:
    """Run the program."""
    for number in _ENDS:
        signal.signal(number, _end)
    from hullcal.cli import run

    run()


if __name__ == "__main__":
    main()
