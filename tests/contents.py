"""What the files of an experiment hold, packed or not."""

from collections.abc import Iterator
from pathlib import Path

import zstandard

MAGIC = b"\x28\xb5\x2f\xfd"


def contents_of(path: Path) -> Iterator[bytes]:
    """What the file holds, as it is and unpacked."""
    data = path.read_bytes()
    yield data
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    at = data.find(MAGIC)
    while at >= 0:
        try:
            yield reader.decompressobj().decompress(data[at:])
        except zstandard.ZstdError:
            pass
        at = data.find(MAGIC, at + 1)
