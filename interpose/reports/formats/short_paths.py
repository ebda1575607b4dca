"""File names as short as they can be without being mistaken for one another."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from interpose.experiments.model.recorded_files import UNKNOWN
from interpose.experiments.model.stacks import Site

_PACKAGE = "__init__.py"
# What Python adds to the names of extension modules: `_json.cpython-312-x86_64-linux-gnu.so`, `_cffi.abi3.so`.
_ABI = re.compile(r"\.(?:cpython-\w+(?:-[\w-]+)?|abi\w+)(?=\.so$)")
_SHOWN_AT_MOST = 100_000
Shown = dict[str, str | None]  # the path of what stands for a line, as `orders.py:88`; None if for lines of two files


class Places:
    """Shows lines of code: files relative to `cwd` if they are below it, otherwise by as many of their last parts as
    tell them apart; a package's `__init__.py` always with the package. What was shown is noted in `shown`."""

    def __init__(self, files: Iterable[str], cwd: str, shown: Shown | None = None) -> None:
        self.shown: Shown = {} if shown is None else shown
        self._under = cwd.rstrip("/") + "/" if cwd else ""
        self._ends = Counter(end for file in set(files) for end in _ends(file))

    def file(self, file: str) -> str:
        """`file`, shortened; an extension module's without the version of Python."""
        return _ABI.sub("", self._shortened(file))

    def _shortened(self, file: str) -> str:
        if self._under and file.startswith(self._under):
            return file[len(self._under) :]
        return next((end for end in _ends(file) if self._ends[end] <= 1 and end != _PACKAGE), file)

    def line(self, site: Site) -> str:
        """File and line of `site`: `orders.py:88`; native code has no lines."""
        if site.is_native:
            return self.file(site.file)
        return self.numbered(site.file, site.line)

    def named(self, site: Site) -> str:
        """The same with the function: `orders.py:88 get`; native code without a symbol is its shared object alone."""
        where = self.line(site)
        return where if site.is_native and site.file.endswith(site.function) else f"{where} {site.function}"

    def numbered(self, file: str, number: int) -> str:
        """The same of a line of `file`; 0 if its number is not known."""
        text = f"{self.file(file)}:{number or UNKNOWN}"
        path = file if file.startswith("/") else self._under + file
        if number and len(self.shown) < _SHOWN_AT_MOST and self.shown.setdefault(text, path) != path:
            self.shown[text] = None
        return text


def _ends(file: str) -> list[str]:
    """The last part of a path, the last two, and so on up to the whole: `orders.py`, `shop/orders.py` …"""
    parts = file.split("/")
    return ["/".join(parts[place:]) for place in range(len(parts) - 1, -1, -1) if parts[place]] or [file]
