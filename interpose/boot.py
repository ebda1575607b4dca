"""Run by the start-up file at every start of Python: one look-up in the environment where nothing is to be recorded."""

import os
import sys

_done = False
lines: "Callable[[bool, str], AbstractContextManager[object]] | None" = None  # the switch of line trace, where recorded
control: "ModuleType | None" = None  # interpose.timing.shims, to control the recording by, where there is one
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import ModuleType


BUNDLE = "startup.bundle"  # in an installed package, made by interpose/bundle.py


class Finder:
    """Finds the modules that a bundle has, as long as it stands in sys.meta_path and is not closed.

    `content` is the bundle's code and whatever follows, `places` say where in it each module is (interpose/bundle.py),
    and their paths go on behind `within`.
    """

    def __init__(self, places, content, within=""):
        self._places, self._content, self._within = places, content, within
        self._external = sys.modules["_frozen_importlib_external"]
        if places.get("") != self._external.MAGIC_NUMBER:
            self.close()

    def close(self):
        """From now on nothing is found."""
        self._places, self._content = {}, b""

    def find_spec(self, name, path=None, target=None):
        if name not in self._places:
            return None
        file, below, _, end = self._places[name]
        below = [self._within + each for each in below] if below else None
        loader = self if end else None  # a compiled library is loaded from its file
        return self._external.spec_from_file_location(
            name, self._within + file, loader=loader, submodule_search_locations=below
        )

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        file, _, begin, end = self._places[name]
        code = sys.modules["marshal"].loads(self._content[begin:end])
        sys.modules["_imp"]._fix_co_filename(code, self._within + file)
        module.__loader__ = module.__spec__.loader = self._external.SourceFileLoader(name, self._within + file)
        exec(code, vars(module))


def open_bundle(directory):
    """A finder of the modules of the package in this directory; of none where there is no bundle, as in a checkout, or
    a damaged one: then they are read from their files."""
    try:
        with open(f"{directory}/{BUNDLE}", "rb") as file:
            content = file.read()
        places = sys.modules["marshal"].loads(content[int.from_bytes(content[-8:], "little") :])
        return Finder(places, memoryview(content), f"{directory}/")
    except Exception:
        return Finder({}, b"")


def boot():
    """Begin recording if the environment says so. Never raises; the start-up file may run twice."""
    global _done
    if _done or os.environ.get("INTERPOSE", "0") in ("", "0"):
        return
    _done = True
    before = set(sys.modules)
    import gc

    collects = gc.isenabled()
    gc.disable()  # nothing that is made here can be let go of before the end
    found = None
    try:
        found = open_bundle(__file__.rpartition("/")[0])
        sys.meta_path.insert(0, found)
        import interpose.capture.session

        interpose.capture.session.begin(before)
    except Exception:
        pass
    finally:
        if found in sys.meta_path:
            sys.meta_path.remove(found)
            found.close()
        if collects:
            gc.enable()
        if "gc" not in before:
            sys.modules.pop("gc", None)
