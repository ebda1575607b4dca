"""What the program marks itself, with interpose.transaction: nothing of it is interposed, it says when it begins."""

from interpose.library import Intrinsic

INTRINSICS = [
    Intrinsic(
        "interpose.transaction",
        "interpose.timing.shims:transaction",
        "logic",
        detail="name",
        argument=None,
        by="mark",
        transaction="is",
    ),
]
