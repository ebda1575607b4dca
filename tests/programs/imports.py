"""Modules that are imported, by every way there is: those that are there already make no call."""

# ruff: noqa: E402, F401 (what is imported, and when, is what this is about)

import importlib
import os
import sys
import zipfile
from contextlib import suppress

with open("nothing_inside.py", "w") as file:
    file.write("")
with open("chain.py", "w") as file:
    file.write("import link\n")
with open("link.py", "w") as file:
    file.write("import missing_link\n")
os.makedirs("no_init/inner")
with open("no_init/inner/deep.py", "w") as file:
    file.write("from . import beside\n")
with open("no_init/inner/beside.py", "w") as file:
    file.write("")
with zipfile.ZipFile("packed.zip", "w") as packed:
    packed.writestr("zipped.py", "")
sys.path.insert(0, "packed.zip")
importlib.invalidate_caches()

import nothing_inside  #: within import detail=nothing_inside
import nothing_inside as again

assert again is nothing_inside
# The packages around it are imported first, inside of it.
import no_init.inner.deep  #: 3 within import detail=no_init...
import zipped  #: within import detail=zipped

importlib.import_module("colorsys")  #: within import detail=colorsys
__import__("xxsubtype")  #: within import detail=xxsubtype
with suppress(ImportError):
    import missing  #: within import detail=missing error=ModuleNotFoundError
with suppress(ImportError):
    import chain  #: within import detail=chain error=ModuleNotFoundError
with suppress(ImportError):
    __import__("sys.nothing")  #: within import detail=sys.nothing error=ModuleNotFoundError
importlib.reload(nothing_inside)
