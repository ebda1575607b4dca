"""The code that runs in the reached program: it finds interpose, lets it begin or end a recording, and reports the
result.

It is text, because the program has no interpose, or only what an earlier time left. It leaves no names there, and
passes on exceptions that are not its own: if a signal handler of the program raises meanwhile, the exception is raised
again afterwards. If several threads compute, each would take the interpreter lock for its five milliseconds whenever
this code reads a file. So threads take turns faster during that time, and interpose's modules come with the code: while
they are installed, nothing waits for a file, and the lock is not released.
"""

from __future__ import annotations

import ast
import marshal
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import MAGIC_NUMBER
from typing import NamedTuple

import interpose
from interpose import bundle
from interpose.attach.tracee import CannotAttach

_CODE = """
def reach(do, given, package, version, python, flags, places):
    import sys, _imp, _thread
    waits_for = sys.modules["_frozen_importlib"]._blocking_on
    if _imp.lock_held() or waits_for.get(_thread.get_ident()):
        return {}  # in the midst of importing: up to 3.11, what this thread notes there would be gone after our imports
    if sys.version_info[:2] != python or sys.abiflags != flags:
        return {"why": "is Python %d.%d%s" % (*sys.version_info[:2], sys.abiflags)}
    interval_s = sys.getswitchinterval()
    try:
        with_us, theirs = bundled(sys, places), sys.meta_path
        if with_us is None:
            return done(sys, with_us, do, given, package, version)
        sys.meta_path = [with_us, *theirs]  # the other stays as it is: a thread that imports may be going through it
        try:
            return done(sys, with_us, do, given, package, version)
        finally:
            kept = [each for each in sys.meta_path if each is not with_us]
            if kept != theirs:
                theirs[:] = kept
            sys.meta_path = theirs
            with_us.close()
    finally:
        sys.setswitchinterval(interval_s + 5e-7)


def bundled(sys, places):
    external, loads = sys.modules["_frozen_importlib_external"], sys.modules["marshal"].loads
    if "bundle" not in globals() or external.MAGIC_NUMBER != places[""]:
        return None
    ours = vars(sys.modules["interpose"]) if "interpose" in sys.modules else {}
    boot = ours.get("boot") or ours.get("_laid_by", {}).get("interpose.boot")
    if not hasattr(boot, "Finder"):
        _, _, begin, end = places["interpose.boot"]
        boot = type(sys)("interpose.boot")
        exec(loads(bundle[begin:end]), vars(boot))
    sys.setswitchinterval(0.05)  # until it is all there: no file is read for it
    return boot.Finder(places, bundle)


def done(sys, with_us, do, given, package, version):
    importing, before = sys.modules["_frozen_importlib"], set(sys.modules)
    found = sys.modules.get("interpose")
    if found is None:
        locate = sys.modules["_frozen_importlib_external"].spec_from_file_location
        spec = with_us and with_us.find_spec("interpose")
        found = importing._load(
            spec or locate("interpose", package + "/__init__.py", submodule_search_locations=[package])
        )
    if package not in getattr(found, "__path__", []) or found.__version__ != version:
        return {"why": "has imported another interpose, from %s" % getattr(found, "__path__", "elsewhere")}
    sys.modules.update(vars(found).pop("_laid_by", {}))
    wanted = ("interpose.boot", "interpose.timing.shims", "interpose.instrumentation.system_library")
    for name in wanted if do == "begin" else ():
        importing._gcd_import(name)
    if do == "end" and "interpose.timing.shims" in sys.modules:
        sys.modules["interpose.timing.shims"].hush()
    attached = importing._gcd_import("interpose.capture.attached")
    sys.setswitchinterval(1e-5)
    return getattr(attached, do)(*given, before, told)


def is_theirs(error, package):
    here = error.__traceback__
    while here.tb_next is not None:
        here = here.tb_next
    is_ours = here.tb_frame.f_globals is globals()
    file = here.tb_frame.f_code.co_filename
    return not isinstance(error, Exception) or not (is_ours or file.startswith((package, "<frozen ")))


told = {{}}
try:
    answer = ascii(reach({arguments}))
except BaseException as error:
    why = "%s: %s" % (type(error).__name__, error)
    answer = ascii(dict(told, raised=why) if told else dict(why=why))
    if is_theirs(error, {package}):
        original = error

        class raised(type(error)):
            def __new__(cls, *nothing):
                return original
finally:
    del reach, bundled, done, is_theirs, told
    if "bundle" in globals():
        bundle.release()
"""

# Of another sort of compiled code, of the same version, only the text can be used.
_START = """
import sys
is_ours = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER == {magic}
exec(sys.modules["marshal"].loads(bundle[{begin}:{end}]) if is_ours else bytes(bundle[{end}:]))
"""


class Code(NamedTuple):
    """The code to run, in ASCII; and a short `start` that runs the same code, compiled, from the global `bundle`,
    because compiling takes forty times the memory of the text. The compiled modules are in the bundle as well."""

    text: str
    start: str
    bundle: bytes


def code(do: str, given: tuple[Mapping[str, str], ...]) -> Code:
    """The code that makes `interpose.capture.attached` of this installation do what is requested."""
    places, modules = _bundled_modules()
    flags = sys.abiflags
    arguments = (do, tuple(map(dict, given)), package(), interpose.__version__, sys.version_info[:2], flags, places)
    head, _, rest = _CODE.partition("\ntold = ")
    rest = rest.format(arguments=", ".join(map(ascii, arguments)), package=ascii(f"{package()}/"))
    text = f"{head}\ntold = {rest}"
    compiled = marshal.dumps(compile(text, "<string>", "exec"))
    end = len(modules) + len(compiled)
    start = _START.format(magic=MAGIC_NUMBER, begin=len(modules), end=end)
    return Code(text, start, modules + compiled + text.encode("ascii"))


@cache  # it takes a third of a second
def _bundled_modules() -> bundle.Bundle:
    return bundle.make([os.path.abspath(each) for each in interpose.__path__])


def dictionary(text: str) -> dict[str, object]:
    """The answer of the code; an invalid one is reported as such, because it comes from a foreign process."""
    try:
        answer = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        answer = None
    return answer if isinstance(answer, dict) else {"why": "it gave no answer"}


def package() -> str:
    """The directory of this package."""
    return os.path.dirname(os.path.abspath(interpose.__file__))


def refuse_what_others_could_change(pid: int, user: int, group: int) -> None:
    """Raises CannotAttach if code that is to run as `user` is neither theirs nor root's, or others may write it."""
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
        if os.path.basename(top) != "interpose":  # a checkout: its folders are at the top
            continue
        yield os.path.dirname(top)
        for place, directories, files in os.walk(top):
            directories[:] = [name for name in directories if name != "__pycache__"]
            yield place
            yield from (os.path.join(place, name) for name in files)
