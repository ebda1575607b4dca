"""What was interposed in a process, and by what: its map."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property

from interpose.experiments.metadata.map import (
    Collector,
    Failure,
    Intrinsic,
    Intrinsics,
    Library,
    read_collectors,
    read_libraries,
    read_map,
)
from interpose.experiments.model.recorded_files import UNKNOWN, RecordedFiles

# Why an intrinsic is not interposed, as the shims say it, where that is as it should be.
EXPECTED = ("this Python has no such name", "not asked for")
UNKNOWN_INTRINSIC = Intrinsic(UNKNOWN, UNKNOWN)


class RecordedIntrinsics(RecordedFiles):
    """The intrinsics of one process, by number, and the libraries and data collectors that provide them."""

    def intrinsic(self, number: int) -> Intrinsic:
        """The intrinsic `number`, as this process or those that forked it name it; `?` if none does."""
        return self.numbered_intrinsics.get(number) or self._missing("map.xml", number, UNKNOWN_INTRINSIC)

    @cached_property
    def numbered_intrinsics(self) -> Intrinsics:
        """All intrinsics by number, as this process or those that forked it name them."""
        named = self.parent.numbered_intrinsics if self.parent else Intrinsics()
        if named and not self._intrinsics:
            return named
        return Intrinsics({**named, **self._intrinsics}) if named else self._intrinsics

    @property
    def not_interposed(self) -> dict[str, str]:
        """Why an intrinsic was not interposed although it is there, by its name."""
        found = self._intrinsics.values()
        return {each.name: each.why_not for each in found if each.why_not not in ("", *EXPECTED)}

    @property
    def intrinsics(self) -> Iterable[Intrinsic]:
        """What this process itself names."""
        return self._intrinsics.values()

    @cached_property
    def _libraries_and_failures(self) -> tuple[list[Library], list[Failure]]:
        return read_libraries(os.path.join(self.directory, "map.xml"))

    @property
    def libraries(self) -> list[Library]:
        """The libraries other than the system library that were found."""
        return self._libraries_and_failures[0]

    @cached_property
    def collectors(self) -> list[Collector]:
        """The data collectors that were used."""
        return read_collectors(os.path.join(self.directory, "map.xml"))

    @property
    def failures(self) -> list[Failure]:
        """What failed in their wrappers."""
        return self._libraries_and_failures[1]

    @cached_property
    def _intrinsics(self) -> Intrinsics:
        return read_map(os.path.join(self.directory, "map.xml"), f"{self.place}/map.xml", self.damages)
