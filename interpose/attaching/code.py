"""What runs in the program that is reached: it finds our package, has it begin or end a recording, and says what came
of it.

It is text, for the program has nothing of ours, or no more than an earlier time has laid by. It leaves no name there,
and passes on what is not ours to catch: an exception that a handler of the program's raises, for a signal that came
just then, is raised again afterwards. Of several threads that compute each would have the interpreter's lock for its
five milliseconds whenever ours reads a file: for so long they take turns faster.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping

import interpose
from interpose.attaching.tracee import CannotAttach

_CODE = """
def reach(do, given, package, version, python, flags):
    import sys, _imp
    if _imp.lock_held():
        return {}
    if sys.version_info[:2] != python or sys.abiflags != flags:
        return {"why": "is Python %d.%d%s" % (*sys.version_info[:2], sys.abiflags)}
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        return done(sys, do, given, package, version)
    finally:
        sys.setswitchinterval(interval_s + 5e-7)


def done(sys, do, given, package, version):
    importing, before = sys.modules["_frozen_importlib"], set(sys.modules)
    found = sys.modules.get("interpose")
    if found is None:
        locate = sys.modules["_frozen_importlib_external"].spec_from_file_location
        found = importing._load(
            locate("interpose", package + "/__init__.py", submodule_search_locations=[package])
        )
    if package not in getattr(found, "__path__", []) or found.__version__ != version:
        return {"why": "has imported another interpose, from %s" % getattr(found, "__path__", "elsewhere")}
    sys.modules.update(vars(found).pop("_laid_by", {}))
    if do == "end" and "interpose.timing.shims" in sys.modules:
        sys.modules["interpose.timing.shims"].hush()
    attached = importing._gcd_import("interpose.attached")
    return getattr(attached, do)(*given, before)


def is_theirs(error, package):
    here = error.__traceback__
    while here.tb_next is not None:
        here = here.tb_next
    file = here.tb_frame.f_code.co_filename
    return not isinstance(error, Exception) or not file.startswith((package, "<frozen ", "<string>"))


try:
    answer = ascii(reach({arguments}))
except BaseException as error:
    answer = ascii({{"why": "%s: %s" % (type(error).__name__, error)}})
    if is_theirs(error, {package}):
        original = error

        class raised(type(error)):
            def __new__(cls, *nothing):
                return original
finally:
    del reach, done, is_theirs
"""


def code(do: str, given: tuple[Mapping[str, str], ...]) -> str:
    """The text by which `interpose.attached` of this installation does what is asked, of ASCII letters."""
    arguments = (do, tuple(map(dict, given)), package(), interpose.__version__, sys.version_info[:2], sys.abiflags)
    head, _, rest = _CODE.partition("\ntry:")
    rest = rest.format(arguments=", ".join(map(ascii, arguments)), package=ascii(f"{package()}/"))
    return f"{head}\ntry:{rest}"


def package() -> str:
    """Where our package lies."""
    return os.path.dirname(os.path.abspath(interpose.__file__))


def refuse_what_others_could_change(pid: int, user: int, group: int) -> None:
    """Raises CannotAttach where code that is to run as `user` is neither theirs nor root's, or others may write it."""
    for path in _code_files():
        try:
            found = os.stat(path)
        except OSError as error:
            raise CannotAttach(f"{path}: {error.strerror}") from None
        is_others = found.st_uid not in (0, user) or found.st_mode & stat.S_IWOTH
        if is_others or (found.st_mode & stat.S_IWGRP and found.st_gid not in (0, group)):
            raise CannotAttach(f"{path}: is not only root's and {pid}'s user's to change, so {pid} does not run it")


def _code_files() -> Iterator[str]:
    for top in dict.fromkeys([package(), *(os.path.abspath(each) for each in interpose.__path__)]):
        if os.path.basename(top) != "interpose":  # a checkout: its folders lie at the top
            continue
        yield os.path.dirname(top)
        for place, directories, files in os.walk(top):
            directories[:] = [name for name in directories if name != "__pycache__"]
            yield place
            yield from (os.path.join(place, name) for name in files)
