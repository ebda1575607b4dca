"""Where does a Python program spend its time: working or waiting, in which call, from which line."""

import os

__version__ = "0.2.0"


def _find_checkout_folders() -> None:
    """Make `interpose.timing` and its neighbours importable where the package lies in its source tree.

    There they are folders at the top, beside this package and not in it.
    """
    package = __path__[0]
    top = os.path.dirname(package)
    if not os.path.exists(package + "/timing") and os.path.exists(top + "/timing/__init__.py"):
        __path__.append(top)


_find_checkout_folders()
