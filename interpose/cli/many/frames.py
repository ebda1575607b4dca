"""Messages between a report and the processes that read for it: a length in eight bytes, then as many bytes."""

from __future__ import annotations

import os

HEAD_BYTES = 8
LONGEST_BYTES = 1 << 31
_PIECE_BYTES = 1 << 20


def send(descriptor: int, message: bytes) -> None:
    """Send a message. Raises OSError if nobody reads."""
    left = memoryview(len(message).to_bytes(HEAD_BYTES, "big") + message)
    while left:
        left = left[os.write(descriptor, left) :]


def receive(descriptor: int) -> bytes | None:
    """The next message; None if there is none any more, or only a part of it."""
    head = _exactly(descriptor, HEAD_BYTES)
    if head is None or int.from_bytes(head, "big") > LONGEST_BYTES:
        return None
    return _exactly(descriptor, int.from_bytes(head, "big"))


def _exactly(descriptor: int, count: int) -> bytes | None:
    made = bytearray()
    while len(made) < count:
        data = os.read(descriptor, min(count - len(made), _PIECE_BYTES))
        if not data:
            return None
        made += data
    return bytes(made)
