"""uvloop: the waits of its event loop, which is written in C. Like asyncio's, waits for new work are idle."""

from interpose.library import Intrinsic

INTRINSICS = [Intrinsic("uvloop.Loop.poll", "uvloop.loop:libuv_get_version", "net idle process", by="loop")]
