"""Packages that do in a thread what would hold up an event loop: who awaits it waits for the thread."""

from interpose.library import Intrinsic

INTRINSICS = [
    Intrinsic("aiofiles.open", "aiofiles.threadpool:_open", "file", detail="path", keyword="file"),
]
