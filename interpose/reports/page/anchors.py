"""Links to the lines in the section of the sources."""

from __future__ import annotations

from interpose.experiments.model.stacks import Site


class Anchors:
    """The lines of sources that the page shows, each with the name by which others link to it."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._names: dict[tuple[str, int], str] = {}

    def put(self, file: str, line: int) -> str:
        """The name for a line that is shown."""
        number = self._files.setdefault(file, len(self._files))
        return self._names.setdefault((file, line), f"line-{number}-{line}")

    def of(self, site: Site | None) -> str | None:
        """The name of the line of `site`, or None if the page does not show it."""
        return self._names.get((site.file, site.line)) if site else None
