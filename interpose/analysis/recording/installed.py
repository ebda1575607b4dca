"""Files of installed packages by their names, as the recorder tells them (cext/core/installed_names.h)."""

from __future__ import annotations

import os
import re

from interpose.experiments.model.process import Process

_PACKAGES = re.compile(r"(?:^|/)(site-packages|dist-packages)/")
_PACKAGE = re.compile(r"(?:.*/)?(?:site-packages|dist-packages)/([^/]+?)(?:\.py)?(?:/.*)?", re.DOTALL)


def packages_above(file: str) -> str:
    """The directory of installed packages that `file` is below: `site-packages`; empty if it is below none."""
    found = _PACKAGES.search(file)
    return found[1] if found else ""


def package_of(file: str) -> str:
    """The installed package or module that `file` belongs to: `joblib`; empty if it belongs to none."""
    found = _PACKAGE.fullmatch(file)
    return found[1] if found else ""


def packages_of_script(process: Process) -> str:
    """The same of the script that the program runs, if no options precede it; its code then counts as a library's."""
    script = next(iter(process.log.arguments), "-")
    return "" if script.startswith("-") else packages_above(os.path.join(process.log.cwd, script))
