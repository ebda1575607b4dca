"""What the program marks itself, with interpose.transaction and user_event: nothing is interposed, it says so."""

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
    Intrinsic(
        "interpose.user_event",
        "interpose.timing.shims:user_event",
        "logic",
        detail="name",
        argument=None,
        by="event",
    ),
]
