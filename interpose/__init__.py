"""Where does a Python program spend its time: working or waiting, in which call, from which line."""

import os
import sys

__version__ = "0.2.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interpose.transactions import transaction as transaction


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
