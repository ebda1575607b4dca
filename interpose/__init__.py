"""Where does a Python program spend its time: working or waiting, in which call, from which line."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from interpose.transactions import transaction as transaction

__version__ = "0.2.0"


class _Nothing:
    """What switching line trace gives where nothing is recorded."""

    def __enter__(self) -> object:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def trace_lines(on: bool = True, to: str = "") -> "AbstractContextManager[object]":
    """Switch line trace on, or off; as a context, off again at its end, if it was not on before.

    `to` is a global in which `interpose lines --global` stores what was recorded: `^lvtr("MYTRACE",$J)`; one that is
    given when it is switched off goes before. Does nothing where this process is not recorded.
    """
    from interpose import boot

    return boot.lines(on, to) if boot.lines else _Nothing()


def _find_checkout_folders() -> None:
    """Make `interpose.timing` and its neighbours importable where the package lies in its source tree.

    There they are folders at the top, beside this package and not in it.
    """
    package = __path__[0]
    top = os.path.dirname(package)
    if not os.path.exists(package + "/timing") and os.path.exists(top + "/timing/__init__.py"):
        __path__.append(top)


def __getattr__(name: str) -> object:
    """`transaction`, which does nothing where nothing is recorded; it is not there before somebody asks for it."""
    if name != "transaction":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(sys.modules.get("interpose.timing.shims"), name, None)
    if found is None:
        from interpose.transactions import transaction as found
    globals()[name] = found
    return found


_find_checkout_folders()
