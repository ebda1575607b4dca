"""uvloop: the waits of its event loop, which is written in C. Like those of asyncio, they are idle if for new work."""

from interpose.library import Intrinsic

INTRINSICS = [Intrinsic("uvloop.Loop.poll", "uvloop.loop:libuv_get_version", "net idle", by="loop")]
