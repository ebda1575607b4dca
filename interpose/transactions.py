"""`interpose.transaction` where nothing is recorded: it does nothing, so that it may stay in the program."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, TypeVar

    Marked = TypeVar("Marked")


class transaction:
    """What is done inside of it, or by the function that it decorates, is one transaction of that name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a transaction must be a str, not {type(name).__name__}")
        self.name = name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def __call__(self, function: Marked) -> Marked:
        """The function itself."""
        return function
