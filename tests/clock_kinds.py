"""The clocks that this machine has. A process may make only a few dozen clocks, so each kind is tried once."""

from functools import cache

import pytest

from interpose.timing import clocks

KINDS = [kind for kind in clocks.KINDS if kind != "auto"]


@cache
def _is_there(kind: str) -> bool:
    return clocks.Clock(kind).kind == kind


def available(kind: str) -> str:
    """The kind; the test is skipped where it cannot be had."""
    if not _is_there(kind):
        pytest.skip(f"no {kind} clock on this machine")
    return kind
