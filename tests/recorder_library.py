"""The recorder's library, called from Python: its functions by the names that they have in C."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import interpose.cext


class RecorderLibrary(ctypes.CDLL):
    """To the linker, each name begins with `interpose_`."""

    def __init__(self) -> None:
        super().__init__(str(Path(next(iter(interpose.cext.__path__)), "libinterpose.so")))

    def __getitem__(self, name: Any) -> Any:
        return super().__getitem__(f"interpose_{name}")
