"""The native intrinsics as they are declared: what the list in cext/native/native_calls.h says of each.

This is imported inside the traced program, where native calls are recorded.
"""

from interpose.kinds import NATIVE
from interpose.library import Intrinsic
from interpose.timing import shims

TARGET = "interpose.timing.shims:native."


def intrinsics():
    """All of them."""
    return [_declared(*row) for row in shims.native_calls()]


def _declared(name, kinds, choice, detail, moves, effect):
    told = {"detail": detail, "bytes": moves, "choice": choice, "effect": effect, "waits": kinds.startswith("sync")}
    return Intrinsic(NATIVE + name, TARGET + name, kinds, by="native", **told)
