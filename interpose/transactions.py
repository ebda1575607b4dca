"""`interpose.transaction` if nothing is recorded: it does nothing, so it can stay in the program."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self, TypeVar

    Marked = TypeVar("Marked")


class transaction:
    """Marks a block (`with transaction("checkout"):`) or a function (`@transaction("checkout")`) as a transaction.

    Of nested transactions, reports list only the outermost; `interpose events` shows them all. Raises TypeError if the
    name is not a str.
    """

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
        """Return the function unchanged."""
        return function
