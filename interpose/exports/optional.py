"""Packages that are not installed with interpose itself."""

from __future__ import annotations

import importlib
from typing import Any

from interpose.errors import UsageError


def optional(name: str) -> Any:
    """The module `name`; if it is not installed, an object that raises UsageError when it is used."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return _Missing(name.partition(".")[0])


class _Missing:
    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        raise UsageError(f"the package {self._package} is missing: pip install 'interpose[sql]'")
