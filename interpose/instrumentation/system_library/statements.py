"""What stands for statements where they are events: each line that line trace comes to."""

from interpose.library import Intrinsic

INTRINSICS = [
    Intrinsic("interpose.statement", "interpose.timing.shims:know_statements", "logic", argument=None, by="line"),
]
