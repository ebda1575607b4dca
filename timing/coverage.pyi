"""What statement coverage gives to Python."""

from collections.abc import Iterable

def begin(
    choices: Iterable[tuple[bytes, bytes]], branches: bool, contexts: bool, probes: bool
) -> bool: ...
def end() -> None: ...
