"""What stands for data collectors where there are any: one of them being called, and a transaction that got a name."""

from interpose.library import Intrinsic

RUNNING, NAMED = "interpose.collector", "interpose.named"
INTRINSICS = [
    Intrinsic(RUNNING, "interpose.timing.shims:collect", "logic", detail="name", argument=None, by="collector"),
    Intrinsic(
        NAMED,
        "interpose.timing.shims:Area",
        "logic",
        detail="name",
        argument=None,
        by="collector",
        transaction="named",
    ),
]
