"""The native intrinsics as they are declared: what the lists in cext/native/native_calls.h and database_calls.h say.

This is imported inside the traced program, where native calls are recorded.
"""

from interpose.library import Intrinsic
from interpose.timing import shims

TARGET = "interpose.timing.shims:native."


def intrinsics():
    """All of them; those of databases are of programs that are not Python."""
    in_both = [_declared("native", *row) for row in shims.native_calls()]
    return in_both + [_declared("program", *row) for row in shims.database_calls()]


def _declared(by, library, name, kinds, choice, detail, moves, effect, is_buffer):
    waits = kinds.startswith("sync") and not detail  # the lock of a file is asked of the kernel: each time is recorded
    told = {"detail": detail, "bytes": moves, "choice": choice, "effect": effect, "waits": waits}
    return Intrinsic(f"{library}.{name}", TARGET + name, kinds, by=by, layer="buffered" if is_buffer else "raw", **told)
