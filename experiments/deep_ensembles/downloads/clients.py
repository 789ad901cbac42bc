"""Asking the registries' own programs (pip, npm, apt-get), which know how this machine is set up."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from experiments.deep_ensembles.downloads.errors import DownloadError, Unreachable

__all__ = ["asked", "found"]


def found(program: str) -> str:
    """The path of a program, or an error that says it is missing."""
    path = shutil.which(program)
    if path is None:
        raise Unreachable(f"{program} is not installed on this machine.")
    return path


def asked(command: Sequence[str], *, folder: Path | None = None, timeout: float = 120.0) -> str:
    """What a program prints, run without a shell; an error with its own words if it fails."""
    said = " ".join([Path(command[0]).name, *command[1:]])
    try:
        answer = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DownloadError(f"`{said}` did not end within {timeout:g} seconds.") from error
    if answer.returncode:
        words = " ".join((answer.stderr.strip() or answer.stdout.strip()).split())[-500:]
        raise DownloadError(f"`{said}` failed: {words or f'exit code {answer.returncode}'}.")
    return answer.stdout
