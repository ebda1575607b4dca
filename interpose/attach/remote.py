"""sys.remote_exec, with which Python 3.14 lets another Python run a file, in its main thread, as soon as that handles
pending requests.

Exceptions in that file do not reach the program; Python prints them there. So the file writes its result into another
file. An exception that a handler of the program raises meanwhile is raised when the file has ended. A request that was
not handled in time is withdrawn before its file is removed.
"""

from __future__ import annotations

import marshal
import os
import shutil
import sys
import tempfile
import time
from importlib.util import MAGIC_NUMBER
from typing import NamedTuple

from interpose.attach.code import Code, dictionary, package
from interpose.attach.tracee import CannotAttach, Tracee

_LOOK_S = 0.005
_ANSWER_S = 60.0  # what has begun is finished
_GRACE_S = 0.1  # who has read the name of a file opens it at once
_ANSWER_BYTES_AT_MOST = 1 << 20
_NOTHING = "/dev/null"
_WANTED, _BEGUN, _SCRIPT, _BUNDLE, _ANSWER = "wanted", "begun", "code.py", "bundle", "answer"
_OFF = "Remote debugging is not enabled"
_SWITCHES = "(PYTHON_DISABLE_REMOTE_DEBUG, -X disable-remote-debug)"

# Short, for what a handler of the program's raises before its first instruction is lost. What it lets go of at the end
# has the thread raise an exception: in here, if anything were called afterwards.
_START = """
import sys
names = {{"later": None}}
if sys.modules["_frozen_importlib_external"].MAGIC_NUMBER == {magic}:
    exec(sys.modules["marshal"].loads({compiled}), names)
later = names["later"]
names["later"] = None
del later
"""
_TEXT = """
import sys
posix, time, original, raised, later = sys.modules["posix"], sys.modules.get("time"), None, None, None
answer, still_ns, is_said = None, 0, False
for do in ("run", "say", "say"):
    quiet = None
    try:
        shims = sys.modules.get("interpose.timing.shims")
        if raised and not shims:
            locate = sys.modules["_frozen_importlib_external"].spec_from_file_location
            shims = sys.modules["_frozen_importlib"]._load(locate("interpose.timing.shims", {shims}))
        quiet = shims and shims.unrecorded()
        quiet and quiet.__enter__()
        if do == "run":
            begun_ns = time.monotonic_ns() if time else 0
            posix.rename({wanted}, {begun})
            answer = "{{}}"
            descriptor = posix.open({bundle}, posix.O_RDONLY | posix.O_CLOEXEC)
            bundle = posix.read(descriptor, {size})
            posix.close(descriptor)
            quiet and quiet.__exit__()
            quiet, names = None, {{"bundle": memoryview(bundle)}}
            exec({start}, names)
            answer, raised = names["answer"], names.get("raised")
            still_ns = time.monotonic_ns() - begun_ns if time else 0
        elif answer and not is_said:
            descriptor = posix.open({answer}, posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC, 0o600)
            posix.write(descriptor, ("%s\\n%d\\n" % (answer, still_ns)).encode("ascii"))
            is_said = True
            posix.close(descriptor)
    except BaseException as error:
        here = error.__traceback__
        while here.tb_next:
            here = here.tb_next
        if here.tb_frame.f_globals is not globals() or not isinstance(error, Exception):
            original = original or error
            raised = raised or type("raised", (type(original),), {{"__new__": lambda *nothing: original}})
            answer = answer or "{{}}"
        del here
    finally:
        quiet and quiet.__exit__()
later = raised and shims and shims.RaisedLater(raised)
"""


class Answer(NamedTuple):
    """What the program said, and for how long its main thread was at it, where it can tell."""

    answer: dict[str, object]
    still_ns: int | None


def run(tracee: Tracee, what: Code, timeout_s: float) -> Answer:
    """Have the program's main thread run it. Raises CannotAttach if it does not in time; then it runs on as it
    was."""
    while not (found := _run_once(tracee, what, time.monotonic() + timeout_s)).answer:
        time.sleep(_LOOK_S)
    return found


def _run_once(tracee: Tracee, what: Code, until_s: float) -> Answer:
    directory = tempfile.mkdtemp(prefix="interpose-")
    request = _Request(tracee, directory)
    try:
        request.write(what)
        request.ask()
        return request.wait(until_s)
    finally:
        request.take_back()
        shutil.rmtree(directory, ignore_errors=True)


class _Request:
    """Files in a directory that the program's user has: who renames `wanted`, the program or we, has decided."""

    def __init__(self, tracee: Tracee, directory: str) -> None:
        self._tracee, self._directory = tracee, directory
        self._asked = False

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def write(self, what: Code) -> None:
        """Write the file to run. Raises CannotAttach if the program would not find it."""
        paths = {name: ascii(self._path(name)) for name in (_WANTED, _BEGUN, _BUNDLE, _ANSWER)}
        text = _TEXT.format(**paths, start=ascii(what.start), size=len(what.bundle), shims=ascii(_shims()))
        compiled = marshal.dumps(compile(text, "<string>", "exec"))
        start = _START.format(magic=MAGIC_NUMBER, compiled=compiled).encode("ascii")
        for name, content in ((_WANTED, b""), (_BUNDLE, what.bundle), (_SCRIPT, start)):
            with open(self._path(name), "xb") as file:
                file.write(content)
        for name in (_WANTED, _BUNDLE, _SCRIPT, ""):
            os.chown(self._path(name), self._tracee.user, -1)
        if not self._tracee.sees(self._path(_SCRIPT)):
            self._tracee.refuse_what_has_ended()
            raise CannotAttach(f"{self._tracee.pid}: does not see {self._directory}: its files are not ours")

    def ask(self) -> None:
        """Raises CannotAttach if it cannot be asked."""
        try:
            sys.remote_exec(self._tracee.pid, self._path(_SCRIPT))  # type: ignore[attr-defined]
        except (OSError, RuntimeError) as error:
            self._tracee.refuse_what_has_ended()
            raise CannotAttach(f"{self._tracee.pid}: {_why(error)}") from None
        self._asked = True

    def wait(self, until_s: float) -> Answer:
        """Raises CannotAttach if the program did not run it in time, or ended."""
        while (found := self._answer()) is None:
            self._tracee.refuse_what_has_ended()
            if time.monotonic() > until_s:
                if self.take_back():
                    raise CannotAttach(
                        f"{self._tracee.pid}: its main thread reached no point where it can be interrupted;"
                        " it continues unchanged; to wait longer, use --wait SECONDS"
                    )
                return self._wait_for_end(time.monotonic() + _ANSWER_S)
            time.sleep(_LOOK_S)
        return found

    def _wait_for_end(self, until_s: float) -> Answer:
        while (found := self._answer()) is None:
            self._tracee.refuse_what_has_ended()
            if time.monotonic() > until_s:
                raise CannotAttach(f"{self._tracee.pid}: it gave no answer")
            time.sleep(_LOOK_S)
        return found

    def take_back(self) -> bool:
        """False if it was too late."""
        try:
            os.rename(self._path(_WANTED), self._path("taken back"))
        except OSError:
            return False
        if self._asked:
            try:
                sys.remote_exec(self._tracee.pid, _NOTHING)  # type: ignore[attr-defined]
            except (OSError, RuntimeError):
                pass  # it has ended
            time.sleep(_GRACE_S)
        return True

    def _answer(self) -> Answer | None:
        try:
            descriptor = os.open(self._path(_ANSWER), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            text = os.read(descriptor, _ANSWER_BYTES_AT_MOST).decode("ascii", "replace")
        finally:
            os.close(descriptor)
        if text.count("\n") < 2:
            return None
        said, _, still_ns = text.partition("\n")
        return Answer(dictionary(said), int(still_ns) if still_ns.strip().isdigit() and int(still_ns) else None)


def _shims() -> str:
    import interpose.timing.shims

    return os.path.join(package(), "timing", os.path.basename(interpose.timing.shims.__file__))


def _why(error: Exception) -> str:
    text = str(error)
    if text == _OFF:
        return f"remote debugging is switched off in the Python that this interpose runs on {_SWITCHES}"
    if text.startswith(_OFF):
        return f"remote debugging is switched off in it {_SWITCHES}: it cannot be reached"
    return f"sys.remote_exec: {text}"
