"""Run by the start-up file at every start of Python: a single look-up in the environment if nothing is to be recorded.
"""

import os
import sys

_done = False
_begins = False
lines: "Callable[[bool, str], AbstractContextManager[object]] | None" = None  # the switch of line trace, where recorded
control: "ModuleType | None" = None  # interpose.timing.shims, to control the recording by, where there is one
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import ModuleType


# In an installed package, made by interpose/bundle.py: what every start imports, and what it also imports if
# other settings than what to record are set.
BUNDLE = "startup.bundle"
SETTINGS_BUNDLE = "settings.bundle"


class Finder:
    """Finds the modules of a bundle, while it is in sys.meta_path and not closed.

    `content` is the bundle's code and whatever follows, `places` say where each module is in it (interpose/bundle.py),
    and their paths continue after `within`.
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
        loader = self if end else None  # the others are loaded from their files
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

    def load_start(self):
        """Execute what every start imports, without the import system, which takes as long again. Where that fails,
        nothing of it stays, and the import system finds the files."""
        names, begin, end = self._places.get("<start>", ((), 0, 0))
        if not sys.modules.keys().isdisjoint(names):
            return  # somebody has imported part of it, and nothing may be imported twice
        try:
            for name in sorted(names):  # packages before their contents
                self._put(name)
            codes = sys.modules["marshal"].loads(self._content[begin:end]) if names else ()
            for name, code in zip(names, codes, strict=True):
                sys.modules["_imp"]._fix_co_filename(code, self._within + self._places[name][0])
                exec(code, vars(sys.modules[name]))
            begin, end = self._places.get("<packed>", (0, 0))
            for name, ready in (sys.modules["marshal"].loads(self._content[begin:end]) if end else {}).items():
                vars(sys.modules[name])["PACKED"] = ready
        except Exception:
            for name in names:
                sys.modules.pop(name, None)
                vars(sys.modules["interpose"]).pop(name.partition(".")[2], None)

    def _put(self, name):
        """Put an empty module of that name where the import system would."""
        file, below, _, _ = self._places[name]
        package, _, last = name.rpartition(".")
        module = type(sys)(name)
        module.__file__ = self._within + file
        module.__package__ = package
        if below:
            module.__package__ = name
            module.__path__ = [self._within + each for each in below]
        sys.modules[name] = module
        setattr(sys.modules[package], last, module)


def open_bundle(directory, name=BUNDLE):
    """A finder for the modules of the package in this directory. It finds none without a bundle, as in a checkout, or
    with a damaged one: they are then read from their files."""
    try:
        with open(f"{directory}/{name}", "rb", 0) as file:
            content = file.read()
        places = sys.modules["marshal"].loads(content[int.from_bytes(content[-8:], "little") :])
        return Finder(places, memoryview(content), f"{directory}/")
    except Exception:
        return Finder({}, b"")


def load_settings():
    """Execute the modules that interpret settings, in one piece, if a recording begins and the bundle has them."""
    if _begins:
        open_bundle(__file__.rpartition("/")[0], SETTINGS_BUNDLE).load_start()


def is_recorded():
    """Whether this process is recorded; only one of its interpreters can have the shims. Raises ImportError if they
    cannot be imported for another reason."""
    try:
        from interpose.timing import shims
    except ImportError as error:
        if "interpreter" in str(error).lower():
            return True
        raise
    return shims.is_recording()


def _another_interpreter_is_recorded():
    """Whether this is not the first interpreter, and the process is recorded: then most of the start is not needed.
    CPython says which interpreter is the first only from 3.13 on. Before, or if this check fails, the session finds
    out. Nothing stays imported."""
    is_first = getattr(sys.modules["_thread"], "_is_main_interpreter", None)
    if is_first is None or is_first():
        return False
    before = set(sys.modules)
    try:
        return is_recorded()
    except Exception:
        return False
    finally:
        for name in set(sys.modules) - before:
            if name.startswith("interpose."):
                del sys.modules[name]
                vars(sys.modules["interpose"]).pop(name.partition(".")[2], None)


def boot():
    """Begin recording if the environment says so. Never raises; the start-up file may run twice."""
    global _begins, _done
    if _done or os.environ.get("INTERPOSE", "0") in ("", "0"):
        return
    _done = True
    if _another_interpreter_is_recorded():
        return
    before = set(sys.modules)
    import gc

    collects = gc.isenabled()
    gc.disable()  # nothing that is made here can be let go of before the end
    found = None
    _begins = True
    try:
        found = open_bundle(__file__.rpartition("/")[0])
        sys.meta_path.insert(0, found)
        found.load_start()
        import interpose.capture.session

        interpose.capture.session.begin(before)
    except Exception:
        pass
    finally:
        _begins = False
        if found in sys.meta_path:
            sys.meta_path.remove(found)
            found.close()
        if collects:
            gc.enable()
        if "gc" not in before:
            sys.modules.pop("gc", None)
