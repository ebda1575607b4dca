"""The beginning of a recording inside the traced program: from the environment to shims in place.

This runs before the program's first line, so it imports next to nothing, and takes what it imported out of sys.modules
again. What goes wrong is kept for the user (interpose.state) and never shown to the program.
"""

import time

_begun = (time.monotonic_ns(), time.thread_time_ns())

import os  # noqa: E402
import sys  # noqa: E402

from interpose import __version__, library, settings, state, system_library  # noqa: E402
from interpose.errors import InterposeError  # noqa: E402
from interpose.experiments import describe, names  # noqa: E402

LINEAGE = "INTERPOSE_LINEAGE"
EXEMPT = "off"  # as a lineage: what an exempt program starts is exempt too
EXEMPT_PROGRAMS = ("interpose", "pip", "tox")
OPTIONS_WITH_WORD = ("-W", "-X", "--check-hash-based-pycs")
STAYING_MODULES = {"interpose", "interpose.boot", "interpose.timing.shims"}
OUR_MODULES = ("interpose.", "__future__", "cython_runtime", "_cython_")
OFF_NS = (1 << 64) - 1
ANCESTORS = 4  # a shell or two may stand between a program and its child


class NotRecorded(Exception):
    """Why nothing is recorded of this process; without a text where that is as it should be."""


def begin(before):
    """Begin recording this process, or keep the reason why not; `before` is what sys.modules had without us."""
    try:
        _begin()
    except NotRecorded as reason:
        if str(reason):
            state.note_not_recorded(program_name(sys.orig_argv), os.getpid(), str(reason))
    except Exception as error:
        state.note_not_recorded(program_name(sys.orig_argv), os.getpid(), _in_words(error))
    finally:
        _forget(before)


def _forget(before):
    """The program's sys.modules has what it had, and as little of ours as can be."""
    package = vars(sys.modules["interpose"])
    for name in set(sys.modules) - before - STAYING_MODULES:
        if name.startswith(OUR_MODULES):
            del sys.modules[name]
            package.pop(name.removeprefix("interpose."), None)


def _in_words(error):
    if isinstance(error, OSError) and error.strerror:
        place = error.filename
        shown = os.fsdecode(place) if isinstance(place, str | bytes) else ""
        return f"{shown}: {error.strerror}" if shown else error.strerror
    return str(error) if isinstance(error, InterposeError) else f"{type(error).__name__}: {error}"


def _begin():
    if os.geteuid() != os.getuid() or os.getegid() != os.getgid():
        raise NotRecorded("the program runs with another user's rights")
    if "t" in sys.abiflags:
        raise NotRecorded("a free-threaded interpreter is not supported yet")
    parent = os.environ.get(LINEAGE, "")
    if parent == EXEMPT or (is_exempt(sys.orig_argv) and not _is_chosen(parent)):
        os.environ[LINEAGE] = EXEMPT
        raise NotRecorded
    wanted = settings.in_force(os.environ)
    if not wanted.record:
        raise NotRecorded
    if _is_recorded():
        raise NotRecorded  # by another interpreter of this process
    os.environ.pop(LINEAGE, None)  # the recorder puts this process's own into what its children get
    parent = parent or find_ancestor()
    founder, lineage, directory = find_place(parent, wanted)
    try:
        record(wanted, founder, lineage, directory, library.resolve([("system", system_library.INTRINSICS)]))
    except Exception:
        _discard(directory)
        raise


def _is_recorded():
    """Whether this process is recorded already; only one of its interpreters can have the shims, and the others are
    told so. Raises ImportError where they cannot be had for another reason."""
    try:
        from interpose.timing import shims
    except ImportError as error:
        if "interpreter" in str(error).lower():
            return True
        raise
    return shims.is_recording()


def _discard(directory):
    """Remove what was made for a recording that could not begin."""
    try:
        for name in os.listdir(directory):
            os.unlink(os.path.join(directory, name))
        os.rmdir(directory)
    except OSError:
        pass  # descendants are in it


def record(wanted, founder, lineage, directory, intrinsics):
    """Begin recording into `directory`, which was made for it. Raises what went wrong; then nothing is in place."""
    from interpose.timing import shims

    try:
        _record(shims, wanted, founder, lineage, directory)
        shims.interpose(intrinsics, sys.modules)
    except Exception:
        shims.end()
        raise
    os.register_at_fork(before=shims.forks, after_in_parent=shims.has_forked, after_in_child=shims.forked)


def _record(shims, wanted, founder, lineage, directory):
    clock, why = shims.choose_clock(wanted.clock)
    shims.begin(
        os.fsencode(directory),
        os.fsencode(founder),
        lineage.encode(),
        clock=clock,
        stacks=wanted.stack != "none",
        stack_above_ns=OFF_NS if wanted.stack_above_ns is None else wanted.stack_above_ns,
        begun_wall_ns=_begun[0],
        begun_cpu_ns=_begun[1],
        libraries=library_directories(),
    )
    call_ns, inside_ns, read_ns = shims.calibrate()
    head = describe.head(
        shims.format_version(),
        shims.layout(),
        version=__version__,
        settings=wanted.texts,
        clock=(clock, why, read_ns, time.get_clock_info("monotonic").resolution),
        cost=(call_ns, inside_ns),
    )
    shims.describe(head.encode("utf-8", "replace"))


# --- which program this is


def split_command(arguments):
    """What an interpreter's command line runs: ("-m", module), ("-c", ""), ("script", path) or ("", "")."""
    words = iter(arguments[1:])
    for word in words:
        if word in ("-m", "-c"):
            return word, next(words, "") if word == "-m" else ""
        if word in OPTIONS_WITH_WORD:
            next(words, "")
        elif not word.startswith("-") or word == "-":
            return "script", word
        elif not word.startswith("--") and "m" in word[1:] and word[-1] == "m":
            return "-m", next(words, "")
        elif not word.startswith("--") and word[-1] == "c":
            return "-c", ""
    return "", ""


def program_name(arguments):
    """What the user would call the program."""
    how, what = split_command(arguments)
    if how == "-m":
        return f"-m {what}"
    return os.path.basename(what) if what not in ("", "-") else how or "python"


def is_exempt(arguments):
    """Whether the program is one that never traces itself."""
    how, what = split_command(arguments)
    if how == "-m":
        return what.partition(".")[0] in EXEMPT_PROGRAMS
    name = os.path.basename(what).removesuffix(".py").rstrip("0123456789.")
    return how == "script" and (name in EXEMPT_PROGRAMS or what.endswith("/site-packages/pip"))


def _is_chosen(parent):
    """Whether `interpose run` was told to run just this program."""
    pid, _, rest = parent.partition(" ")
    return pid == str(os.getppid()) and rest.endswith(" ")


# --- where it is recorded


def find_ancestor():
    """The nearest ancestor that is recorded, as INTERPOSE_LINEAGE says it; empty where there is none.

    A program may start its children with a copy of its own environment, which does not have what the recorder put into
    the real one. Their parents' mapped files tell all the same.
    """
    pid = os.getppid()
    for _ in range(ANCESTORS):
        if pid <= 1:
            break
        for directory in _mapped_experiments(pid):
            founder, lineage = _founder_and_lineage(directory)
            if _is_own_directory(directory) and _is_of(directory, pid):
                return f"{pid} {founder} {lineage}"
        pid = _parent_of(pid)
    return ""


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _mapped_experiments(pid):
    """The directories of experiments whose threads the process has mapped."""
    end = b".er/threads\n"
    lines = [line for line in _read(f"/proc/{pid}/maps").splitlines(keepends=True) if line.endswith(end)]
    return dict.fromkeys(os.fsdecode(line[line.index(b"/") : -len("/threads\n")]) for line in lines)


def _founder_and_lineage(directory):
    above, name = os.path.split(directory)
    lineage = name.removesuffix(names.SUFFIX)
    return (above, lineage) if above.endswith(names.SUFFIX) and names.is_lineage(lineage) else (directory, "")


def _is_of(directory, pid):
    """Whether the experiment is the process's own: a forked child has its parent's mapped as well."""
    return b'<process pid="%d" ' % pid in _read(os.path.join(directory, names.LOG))


def _parent_of(pid):
    """The process's parent; 0 where it cannot be told."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def find_place(parent, wanted):
    """The founder's directory, this process's lineage, and the directory of its own experiment."""
    pid, _, rest = parent.partition(" ")
    founder, _, lineage = rest.rpartition(" ")
    if founder.startswith("/") and names.is_lineage(lineage) and _is_own_directory(founder):
        if not lineage and _claim(founder):
            return founder, "", founder
        return founder, *_make_descendant(founder, lineage + ("_x" if pid == str(os.getpid()) else "_c"))
    founder = _create(wanted)
    _claim(founder)
    return founder, "", founder


def _is_own_directory(path):
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return found.st_uid == os.getuid() and found.st_mode & 0o170022 == 0o040000


def _claim(founder):
    """Of all the processes that `interpose run` started, the first to come here is the founder."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.close(os.open(os.path.join(founder, names.LOG), flags, 0o600))
    except FileExistsError:
        return False
    return True


def _make_descendant(founder, step):
    number = 1
    while True:
        directory = names.lineage_path(founder, f"{step}{number}")
        try:
            names.make_private(directory)
        except FileExistsError:
            number += 1
        else:
            return f"{step}{number}", directory


def _create(wanted):
    try:
        return names.create(wanted.dir, wanted.name)
    except FileExistsError:
        raise
    except OSError:
        elsewhere = state.experiments_directory()
        if elsewhere is None:
            raise
        return names.create(elsewhere, wanted.name)


def library_directories():
    """Where code lies that is not the program's own, as bytes that end with a slash."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = [os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(__file__)) + "/interpose"]
    found += [f"{prefix}/lib/{version}" for prefix in (sys.prefix, sys.base_prefix)]
    found += [path for path in sys.path if path.endswith(("site-packages", "dist-packages", ".zip"))]
    return [os.fsencode(path) + b"/" for path in dict.fromkeys(found)][:16]
