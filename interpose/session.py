"""The beginning of a recording inside the traced program: from the environment to shims in place.

This runs before the program's first line, so it imports next to nothing, and takes what it imported out of sys.modules
again. What goes wrong is kept for the user (interpose.state) and never shown to the program.
"""

import time

_begun = (time.monotonic_ns(), time.thread_time_ns())

import os  # noqa: E402
import sys  # noqa: E402

from interpose import __version__, levels, library, policy, system_library  # noqa: E402
from interpose.config import precedence, project_file  # noqa: E402
from interpose.errors import InterposeError, SettingError  # noqa: E402
from interpose.experiments import describe, names  # noqa: E402

LINEAGE = "INTERPOSE_LINEAGE"
GROUP = "INTERPOSE_GROUP"  # where the founder found its group's libraries
WITHIN = "INTERPOSE_WITHIN"  # what became of the transaction that we were started in
LIBRARY_DIRECTORY = "interpose.d"
ADDED = "INTERPOSE_ADDED"  # the names of the variables that an ancestor gave us, not the program
EXEMPT = "off"  # as a lineage: what an exempt program starts is exempt too
EXEMPT_PROGRAMS = ("interpose", "pip", "tox")
OPTIONS_WITH_WORD = ("-W", "-X", "--check-hash-based-pycs")
STAYING_MODULES = {
    "interpose",
    "interpose.boot",
    "interpose.timing.shims",
    "interpose.timing.lines",
    "interpose.timing.coverage",
}
OUR_MODULES = ("interpose.", "__future__", "cython_runtime", "_cython_")
# The variables by which launchers tell a rank of MPI its number, and one without which each does not mean that.
RANKS = {
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK": "PMIX_RANK",
    "PMI_RANK": "PMI_RANK",
    "MV2_COMM_WORLD_RANK": "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID": "SLURM_STEP_ID",
}
ANCESTORS = 4  # a shell or two may stand between a program and its child


def begins_now():
    """Recording begins now, and not when this was imported."""
    global _begun
    _begun = (time.monotonic_ns(), time.thread_time_ns())


class NotRecorded(Exception):
    """Why nothing is recorded of this process; without a text where that is as it should be."""


def begin(before):
    """Begin recording this process, or keep the reason why not; `before` is what sys.modules had without us."""
    try:
        _begin()
    except NotRecorded as reason:
        if str(reason):
            _note_not_recorded(str(reason))
    except Exception as error:
        _note_not_recorded(in_words(error))
    finally:
        forget(before)


def _note_not_recorded(reason):
    from interpose import state

    state.note_not_recorded(program_name(sys.orig_argv), os.getpid(), reason)


def forget(before):
    """The program's sys.modules has what it had, and as little of ours as can be."""
    package = vars(sys.modules["interpose"])
    for name in set(sys.modules) - before - STAYING_MODULES:
        if name.startswith(OUR_MODULES):
            del sys.modules[name]
            package.pop(name.removeprefix("interpose."), None)


def in_words(error):
    if isinstance(error, OSError) and error.strerror:
        place = error.filename
        shown = os.fsdecode(place) if isinstance(place, str | bytes) else ""
        return f"{shown}: {error.strerror}" if shown else error.strerror
    return str(error) if isinstance(error, InterposeError) else f"{type(error).__name__}: {error}"


def _begin():
    environment = hide_added(os.environ)
    refuse_what_is_never_recorded()
    parent = environment.get(LINEAGE, "")
    if parent == EXEMPT or (is_exempt(sys.orig_argv) and not _is_chosen(parent)):
        _exempt(environment)
        raise NotRecorded
    wanted = precedence.in_force(environment)
    wanted.within = environment.get(WITHIN, "") if parent else ""
    if not wanted.record:
        raise NotRecorded
    if _is_recorded():
        raise NotRecorded  # by another interpreter of this process
    begin_wanted(wanted, parent or find_ancestor(), environment)


def refuse_what_is_never_recorded():
    """Raises NotRecorded, with the reason."""
    if os.geteuid() != os.getuid() or os.getegid() != os.getgid():
        raise NotRecorded("the program runs with another user's rights")
    if "t" in sys.abiflags:
        raise NotRecorded("a free-threaded interpreter is not supported yet")


def begin_wanted(wanted, parent, environment):
    """Begin recording this process as is wanted; gives the directory. `parent` is whose descendant it is, empty where
    it is the first. Raises NotRecorded, and what went wrong; then nothing is in place."""
    heed_policy(wanted)
    choose_descendants(wanted)
    choose_redacted(wanted)
    founder, lineage, directory = find_place(parent, wanted)
    try:
        found = load_libraries(wanted, environment) if "calls" in wanted.record else None
        collected = load_collectors(wanted, environment) if "calls" in wanted.record else None
        packages = None if found or wanted.by != "place" or "calls" not in wanted.record else Packages(wanted)
        intrinsics = intrinsics_of(wanted, found, everything=not packages, collected=collected)
        record(wanted, founder, lineage, directory, intrinsics, found, packages, collected)
    except BaseException:
        _discard(directory)
        raise
    return directory


def heed_policy(wanted):
    """Have nothing recorded that the administrator forbids. Raises NotRecorded where that is all."""
    try:
        forbidden = policy.read()
        if forbidden is None:
            return
        policy.check(forbidden, sys.orig_argv)
    except policy.Forbidden as why:
        raise NotRecorded(str(why)) from None
    wanted.forbidden = forbidden.kinds
    wanted.record = tuple(word for word in wanted.record if word not in forbidden.kinds)
    wanted.warnings += [f"{place}: kinds = {kind}: not recorded" for kind, place in forbidden.kinds.items()]
    if not wanted.record:
        raise NotRecorded("; ".join(wanted.warnings))


def hide_added(environ):
    """The environment as it was given; what is not the program's own is taken out of the mapping `environ`, not out of
    what children inherit."""
    if ADDED not in environ and LINEAGE not in environ:
        return environ
    given = dict(environ)
    for name in (ADDED, LINEAGE, GROUP, WITHIN, *given.get(ADDED, "").split(" ")):
        if name.startswith("INTERPOSE"):
            environ._data.pop(environ.encodekey(name), None)
    return given


def choose_descendants(wanted):
    """Choose which descendants are recorded. Raises SettingError."""
    from interpose.timing import shims

    command = " ".join(describe.redact(sys.orig_argv)) if wanted.follow[:1] == "=" else ""
    if wrong := shims.choose_descendants(os.fsencode(wanted.follow), os.fsencode(command)):
        raise SettingError(f"{wanted.said['INTERPOSE_FOLLOW']}: {wrong}")


def choose_redacted(wanted):
    """Choose what is not to be written. Raises SettingError."""
    from interpose.timing import shims

    shims.choose_arguments(wanted.arguments)
    if wrong := shims.choose_redacted(os.fsencode(wanted.redact)):
        raise SettingError(f"{wanted.said['INTERPOSE_REDACT']}: {wrong}")


def _redacted(shims, text):
    return os.fsdecode(shims.redacted(os.fsencode(text)))


def variables_of(wanted):
    """What descendants are given where they have not got it: what is set, each `NAME=value` and a zero byte."""
    texts = wanted.environment().items()
    set_here = [(name, text) for name, text in texts if wanted.origins[name] != "default" or name == "INTERPOSE"]
    return b"".join([os.fsencode(f"{name}={text}") + b"\0" for name, text in set_here if "\0" not in text])


def _exempt(environment):
    """What this process starts is exempt as well."""
    if ADDED not in environment:
        os.environ[LINEAGE] = EXEMPT
        return
    for name in environment:
        if name.startswith("INTERPOSE") and name not in os.environ:
            os.unsetenv(name)


def intrinsics_of(wanted, found=None, everything=False, collected=None):
    """The intrinsics to be interposed, in the search order of their libraries; `found` are those besides ours. Where
    there are such, or `everything` is wanted, what we declare of packages is among them; else it is declared later.
    Where there are data collectors, `collected`, so is what stands for them."""
    if "calls" not in wanted.record:
        return []
    layers = ("raw", "buffered") if wanted.files == "buffered" else ("raw",)
    if found or everything:
        every = (library.SYSTEM, [*system_library.every(), *_of_collectors(collected), *_of_statements(wanted)])
        _sample([every, *(found.libraries if found else ())], wanted)
        return _at_levels(found.resolve(every, layers) if found else library.resolve([every], layers), wanted)
    ours = (library.SYSTEM, [*system_library.INTRINSICS, *_of_collectors(collected), *_of_statements(wanted)])
    _sample([ours], wanted)
    return _at_levels(library.resolve([ours], layers), wanted)


def _sample(libraries, wanted):
    """Have transactions be sampled, where that is wanted."""
    if wanted.one_in:
        for _, intrinsics in libraries:
            for each in intrinsics:
                each.be_sampled()


def _of_collectors(collected):
    if not collected:
        return []
    from interpose.system_library import collected as ours

    return ours.INTRINSICS


def _of_statements(wanted):
    if not wanted.statements:
        return []
    from interpose.system_library import statements as ours

    return ours.INTRINSICS


def _at_levels(intrinsics, wanted):
    if wanted.kinds or wanted.levels:
        levels.assign(intrinsics, wanted.kinds, wanted.levels)
    return levels.forbid(intrinsics, wanted.forbidden) if wanted.forbidden else intrinsics


class Packages:
    """What our library declares of packages, read when one of them has been imported; long after our other modules
    have been forgotten, which are there again as long as it takes."""

    def __init__(self, wanted):
        self.names = list(system_library.PACKAGES)
        self._wanted = wanted
        self._declared = set()
        self._modules = {module.__name__: module for module in (library, system_library)}

    def declare(self, package, number):
        """The intrinsics of a package, and of others that are declared beside it, numbered from `number` on."""
        before = set(sys.modules)
        sys.modules.update(self._modules)
        try:
            declared = [each for each in system_library.of_packages([package]) if each.target not in self._declared]
        finally:
            for name in set(sys.modules) - before:
                if name.startswith(OUR_MODULES):
                    del sys.modules[name]
        self._declared.update([each.target for each in declared])
        _sample([(library.SYSTEM, declared)], self._wanted)
        layers = ("raw", "buffered") if self._wanted.files == "buffered" else ("raw",)
        return _at_levels(library.resolve([(library.SYSTEM, declared)], layers, number), self._wanted)


def load_libraries(wanted, environment):
    """The libraries besides ours, loaded; None where there are none, as nearly always."""
    places = library_places(wanted, environment, sys.orig_argv)
    if places is None:
        return None
    from interpose import libraries

    group = places[0]
    if group and wanted.origins[GROUP] == "default":  # descendants have the same
        wanted.group = wanted.texts[GROUP] = group
        wanted.origins[GROUP] = "found"
        os.putenv(GROUP, group)
    found = libraries.load(wanted, places)
    return found if found.libraries or found.notes else None


def load_collectors(wanted, environment):
    """The data collectors of this program, loaded; None where there are none, as nearly always."""
    if wanted.collectors == ():
        return None
    places = library_places(wanted, environment, sys.orig_argv)
    if places is None and wanted.collectors is None:
        return None
    from interpose import collecting
    from interpose.timing import shims

    program = program_name(sys.orig_argv).removeprefix("-m ")
    return collecting.find(wanted.collectors, places or ("", "", ""), program, shims.native_collector)


# --- which libraries may be there


def library_places(wanted, environment, arguments):
    """Where libraries are to be looked for: the group's directory, the account's, the file of what was resolved before,
    each empty where there is none. None where no library but ours is there, or wanted."""
    if wanted.lib == "S" and not wanted.xl:
        return None
    home = environment.get("HOME", "")
    group = "" if wanted.lib == "P" and not wanted.xl else wanted.group
    if group == "auto":
        group = find_group(library_start(arguments, home), home)
    account = _base(environment, "XDG_CONFIG_HOME", home, ".config")
    account = account and f"{account}/{LIBRARY_DIRECTORY}"
    resolved = resolved_file(environment)
    account = account if account and os.path.isdir(account) else ""
    resolved = resolved if resolved and os.path.isfile(resolved) else ""
    return (group, account, resolved) if group or account or resolved or wanted.xl else None


def resolved_file(environment):
    """Where commands write down which libraries projects and packages name; empty where there is no such place."""
    base = _base(environment, "XDG_STATE_HOME", environment.get("HOME", ""), ".local/state")
    return base and f"{base}/libraries"


def _base(environment, variable, home, below):
    """Our directory among the user's; the XDG specification: a relative path is to be ignored."""
    base = environment.get(variable, "")
    if not base.startswith("/"):
        base = f"{home}/{below}" if home.startswith("/") else ""
    return base and f"{base}/interpose"


def library_start(arguments, home):
    """Where the way upward to the group's libraries begins: the main script's directory; the working directory for a
    module, for what was typed, and for a command that was installed with an interpreter."""
    how, what = split_command(arguments)
    try:
        here = os.getcwd()
        if how != "script" or what == "-":
            return here
        path = os.path.join(here, what)
        if os.path.islink(path):
            path = os.path.realpath(path)
        if not what.endswith(".py") and os.path.isdir(path):
            return os.path.normpath(path)
    except OSError:
        return ""
    directory = os.path.normpath(os.path.dirname(path))
    interpreters = [os.path.dirname(sys.executable or ""), os.path.dirname(arguments[0])]
    installed = [*interpreters, f"{sys.prefix}/bin", f"{sys.base_prefix}/bin", f"{home}/.local/bin"]
    return here if directory in installed and not what.endswith(".py") else directory


def find_group(directory, home):
    """The nearest directory, from this one upward, that has libraries; never above the home or the repository."""
    while directory:
        if os.path.isdir(f"{directory}/{LIBRARY_DIRECTORY}") or _names_libraries(directory):
            return directory
        above = os.path.dirname(directory)
        if above == directory or directory == home or os.path.lexists(f"{directory}/.git"):
            break
        directory = above
    return ""


def _names_libraries(directory):
    data = project_file.read_plain(f"{directory}/{project_file.FILE}")
    return data is not None and project_file.names_libraries(data)


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


def record(wanted, founder, lineage, directory, intrinsics, found=None, packages=None, collected=None):
    """Begin recording into `directory`, which was made for it; `found` are the libraries besides ours, where there are
    any, `packages` what declares later what is not among the `intrinsics`, `collected` the data collectors, if any.
    Raises what went wrong; then nothing is in place."""
    from interpose.timing import shims

    shims.prepare_monitor(os.fsencode(sys.executable or ""), b":".join(import_directories()))
    why_not = "" if wanted.by == "place" else "as asked"
    why_not = why_not or shims.works_in_place(sys.modules)
    try:
        paths = [*(found.paths if found else ()), *(collected.paths if collected else ())]
        interposed = ("wrapt", why_not) if why_not else ("place", "")
        call_ns = _record(shims, wanted, founder, lineage, directory, interposed, paths)
        if found:
            shims.note_libraries(found.notes)
        # Before anything is in place: other threads may call meanwhile.
        begin_filter(shims, wanted, not lineage)
        if collected:
            _collect(shims, collected)
        if wanted.budget_ppm:
            shims.govern(wanted.budget_ppm, call_ns)
        catch_all = found.catch_all if found else None
        if why_not:
            every = intrinsics_of(wanted, found, everything=True, collected=collected) if packages else intrinsics
            _wrap(shims, every, catch_all)
        else:
            shims.interpose(intrinsics, sys.modules, catch_all=catch_all, packages=packages)
        begin_lines(wanted)
        begin_coverage(wanted)
        if "interpose.boot" in sys.modules:
            from interpose import boot

            boot.control = shims
        if not shims.knows_of_forks():
            os.register_at_fork(before=shims.forks, after_in_parent=shims.has_forked, after_in_child=shims.forked)
    except BaseException:
        if "interpose.boot" in sys.modules:
            from interpose import boot

            boot.lines = boot.control = None
        shims.end()
        raise


def begin_filter(shims, wanted, is_founder):
    """Record only what the filter of the experiment lets pass, which is the founder's; what could not be done of what
    was asked is noted."""
    compiled = b""
    recorded = precedence.kinds_recorded(wanted) if is_founder and wanted.filter else None
    if recorded and not precedence.why_no_filter(wanted.filter, "", recorded):
        from interpose import filters

        found = filters.parse(wanted.filter)
        compiled = found.compiled(_begun[0]) if found else b""
    shims.filter_calls(compiled)
    shims.sample_calls(wanted.interval_ns or 0)
    if compiled:
        shims.note_filter(wanted.filter)
    for text in wanted.warnings if is_founder else ():
        shims.warn(text)


def begin_lines(wanted):
    """Let the program switch line trace on and off; it is on from the beginning where lines are wanted."""
    switch = Lines(wanted)
    if "lines" in wanted.record:
        switch(True, "")
    if "interpose.boot" in sys.modules:
        from interpose import boot

        boot.lines = switch


def begin_coverage(wanted):
    """Record which statements are executed, where that is wanted."""
    if "coverage" in wanted.record:
        from interpose.timing import shims

        with shims.unrecorded():  # an import of ours
            from interpose.timing import coverage

        choices = [(os.fsencode(module), os.fsencode(function)) for module, function in wanted.coverage]
        coverage.begin(choices, wanted.branches, wanted.contexts, wanted.probes)


class Lines:
    """The switch of line trace; what it takes is imported when it is first switched on."""

    def __init__(self, wanted):
        from interpose.timing import shims

        self._unrecorded = shims.unrecorded
        self._choices = [(os.fsencode(module), os.fsencode(function)) for module, function in wanted.lines]
        self._how = (wanted.lines_depth, wanted.lines_system)

    def __call__(self, on, to):
        with self._unrecorded():  # an import of ours
            from interpose.timing import lines

        if on and not lines.is_prepared():
            lines.begin(self._choices, *self._how)
        return lines.trace(on, os.fsencode(to))


def _wrap(shims, intrinsics, catch_all):
    """Interpose what wrapt reaches: wanted so, or what is left where shims in place do not work."""
    from interpose import wrappers

    shims.interpose(wrappers.publish(intrinsics), sys.modules, wrappers.Wrappers(), catch_all)


def _record(shims, wanted, founder, lineage, directory, interposed, paths):
    clock, why = shims.choose_clock(wanted.clock)
    roots = import_roots()
    wait_above_ns = shims.calibrate_waits() if wanted.wait_above_ns is None else wanted.wait_above_ns
    choose_transactions(shims, wanted, lineage)
    shims.begin(
        wanted,
        directory=directory,
        founder=founder,
        lineage=lineage,
        clock=clock,
        wait_above_ns=wait_above_ns,
        begun_wall_ns=_begun[0],
        begun_cpu_ns=_begun[1],
        group_reads=names.does_group_read(directory),
        rows="each" if wanted.interval_ns else wanted.rows,
        dialogue_bytes=0 if "screen" in wanted.forbidden else wanted.dialogue_bytes,
        libraries=[*map(os.fsencode, paths), *library_directories()],
        roots=[os.fsencode(path) for path in roots],
        variables=variables_of(wanted),
    )
    call_ns, inside_ns, read_ns = shims.calibrate()
    cost = {"call_ns": call_ns, "inside_ns": inside_ns, "wait_above_ns": wait_above_ns}
    if wanted.statements:
        cost["statement_ns"] = shims.calibrate_statements()
    head = describe.head(
        shims.format_version(),
        shims.layout(),
        version=__version__,
        # The expression may name the secret itself.
        settings={**wanted.texts, "INTERPOSE_REDACT": "on" if wanted.redact else "off"},
        clock=(clock, why, read_ns, time.get_clock_info("monotonic").resolution),
        cost=cost,
        interposed=interposed,
        roots=roots,
        redacted=lambda text: _redacted(shims, text),
    )
    shims.describe(head.encode("utf-8", "replace"))
    shims.tell_fate()
    return call_ns


def choose_transactions(shims, wanted, lineage):
    """Keep one transaction in so many, where that is wanted; where no seed was given, one is drawn and written down."""
    if wanted.one_in and wanted.seed is None:
        wanted.seed = int.from_bytes(os.urandom(4), "little")
        wanted.texts["INTERPOSE_SEED"] = str(wanted.seed)
    shims.choose_transactions(wanted.seed or 0, wanted.one_in, lineage.encode(), wanted.within)


def _collect(shims, collected):
    from interpose.system_library import collected as ours

    shims.note_libraries(collected.notes)
    shims.collect(collected.chosen, ours.RUNNING, ours.NAMED, ours.INTRINSICS)


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
        if found := recorded_in(pid):
            return f"{pid} {found[0]} {found[1]}"
        pid = _parent_of(pid)
    return ""


def recorded_in(pid):
    """The founder's directory and the lineage of the process `pid`, of this user's, which is recorded; None where it is
    not."""
    for directory in _mapped_experiments(pid):
        if _is_own_directory(directory) and _is_of(directory, pid):
            return _founder_and_lineage(directory)
    return None


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
    """The founder's directory, this process's lineage, and the directory of its own experiment. Raises NotRecorded."""
    pid, _, rest = parent.partition(" ")
    founder, _, lineage = rest.rpartition(" ")
    if founder.startswith("/") and names.is_lineage(lineage) and _is_own_directory(founder):
        rank = "" if lineage else find_rank(pid)
        if not lineage and _may_be_founder(parent, wanted) and _claim(founder) and not rank:
            return founder, "", founder
        if wanted.follow == "off" or not os.path.exists(os.path.join(founder, names.LOG)):
            raise NotRecorded
        if rank and (directory := _make_followed(founder, rank)):
            return founder, rank, directory
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
    try:
        _make_empty(os.path.join(founder, names.LOG))
    except FileExistsError:
        return False
    return True


def _make_empty(path):
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    os.close(os.open(path, flags, 0o600))


def _may_be_founder(parent, wanted):
    """Whether a process that `interpose run` has started, or what it has, may be the one that all others are of."""
    from interpose.timing import shims

    return wanted.follow == "off" or _is_chosen(parent) or shims.is_followed(b"")


def find_rank(pid):
    """The lineage of a rank of MPI, by what its launcher says, which the process that began all was not told itself;
    empty for what is no rank."""
    texts = _read(f"/proc/{pid}/environ").split(b"\0") if any(name in os.environ for name in RANKS) else []
    for name, needed in RANKS.items():
        rank = os.environ.get(name, "")
        plain = rank.isascii() and rank.isdecimal() and len(rank) < 10
        if plain and needed in os.environ and os.fsencode(f"{name}={rank}") not in texts:
            return f"M_r{int(rank)}"
    return ""


def _make_descendant(founder, step):
    number = 1
    while not (directory := _make_followed(founder, f"{step}{number}")):
        number += 1
    return f"{step}{number}", directory


def _make_followed(founder, lineage):
    """The directory made for a lineage; empty where that is taken. Raises NotRecorded where it is not to be recorded:
    then a file has the name, so that the next lineage has the next number."""
    from interpose.timing import shims

    directory = names.lineage_path(founder, lineage)
    followed = shims.is_followed(lineage.encode())
    try:
        if followed:
            names.make_like_above(directory)
        else:
            _make_empty(directory)
    except FileExistsError:
        return ""
    if not followed:
        raise NotRecorded
    return directory


def _create(wanted):
    try:
        return names.create(wanted.dir, wanted.name, wanted.group_reads)
    except FileExistsError:
        raise
    except OSError:
        from interpose import state

        elsewhere = state.experiments_directory()
        if elsewhere is None:
            raise
        return names.create(elsewhere, wanted.name)


def import_roots():
    """The directories that the program imports from, as far as is known before its first line."""
    how, what = split_command(sys.orig_argv)
    try:
        own = os.path.dirname(os.path.realpath(what)) if how == "script" and what != "-" else os.getcwd()
    except OSError:
        own = ""
    found = [own, *sys.path]
    return [path for path in dict.fromkeys(found) if path.startswith("/")][:64]


def import_directories():
    """Where the monitor finds what it imports, as bytes: first where we lie, then what is installed beside."""
    installed = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    found = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))), *installed]
    return [os.fsencode(path) for path in dict.fromkeys(found) if ":" not in path]


def library_directories():
    """Where code lies that is not the program's own, as bytes that end with a slash."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = [os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(__file__)) + "/interpose"]
    found += [f"{prefix}/lib/{version}" for prefix in (sys.prefix, sys.base_prefix)]
    found += [path for path in sys.path if path.endswith(("site-packages", "dist-packages", ".zip"))]
    return [os.fsencode(path) + b"/" for path in dict.fromkeys(found)][:16]
