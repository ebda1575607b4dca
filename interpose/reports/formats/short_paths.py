"""File names as short as they can be without being mistaken for one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from interpose.experiments.model.process import UNKNOWN, Site


class Places:
    """Shows places in code: files relative to `cwd` where they lie under it, else by their last part."""

    def __init__(self, files: Iterable[str], cwd: str) -> None:
        self._under = cwd.rstrip("/") + "/" if cwd else ""
        self._last_parts = Counter(_last_part(file) for file in set(files))

    def file(self, file: str) -> str:
        """`file`, shortened."""
        if self._under and file.startswith(self._under):
            return file[len(self._under) :]
        last = _last_part(file)
        return last if self._last_parts[last] <= 1 else file

    def line(self, site: Site) -> str:
        """File and line of `site`: `orders.py:88`."""
        return f"{self.file(site.file)}:{site.line or UNKNOWN}"


def _last_part(file: str) -> str:
    return file.rpartition("/")[2] or file
