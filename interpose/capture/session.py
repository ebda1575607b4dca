"""Begins a recording inside the traced program: from the environment to installed shims.

This runs before the program's first line, so it imports next to nothing, and removes its imports from sys.modules
again. Errors are stored for the user (interpose.config.state), and never shown to the program.
"""

import time

_begun = (time.monotonic_ns(), time.thread_time_ns())
_directory = ""  # the directory for the experiment, once known
_starter = ""  # the experiment of the process that started this one, if it is recorded

import os  # noqa: E402
import sys  # noqa: E402

from interpose import __version__, boot  # noqa: E402
from interpose.capture.descent import NotRecorded, find_ancestor, find_place, is_chosen, starter_directory  # noqa: E402
from interpose.capture.interposed import (  # noqa: E402
    GROUP,
    OUR_MODULES,
    Packages,
    intrinsics_of,
    load_collectors,
    load_libraries,
)
from interpose.capture.line_switch import switch_lines  # noqa: E402
from interpose.config import in_force, settings_file  # noqa: E402
from interpose.config.command_line import kept_arguments  # noqa: E402
from interpose.config.program import import_directories, import_roots, is_exempt, library_directories, program_name  # noqa: E402  # noqa: E402
from interpose.config.trust import has_other_rights  # noqa: E402
from interpose.errors import InterposeError, SettingError  # noqa: E402
from interpose.experiments.metadata import describe, names  # noqa: E402
from interpose.instrumentation.search import library_places  # noqa: E402

POLICY = "/etc/interpose.conf"  # what the administrator forbids
LINEAGE = "INTERPOSE_LINEAGE"
WITHIN = "INTERPOSE_WITHIN"  # what became of the transaction that we were started in
ADDED = "INTERPOSE_ADDED"  # the names of the variables that an ancestor gave us, not the program
EXEMPT = "off"  # as a lineage: what an exempt program starts is exempt too
STAYING_MODULES = {
    "interpose",
    "interpose.boot",
    "interpose.timing.shims",
    "interpose.timing.lines",
    "interpose.timing.coverage",
    "interpose.timing.heap",
}
# Nothing that stays uses these.
MODULES_OF_START = (
    "interpose.capture.descent",
    "interpose.capture.session",
    "interpose.config.command_line",
    "interpose.experiments.metadata.describe",
    "interpose.experiments.metadata.names",
    "interpose.instrumentation.search",
)


def begins_now():
    """Recording begins now, and not when this was imported."""
    global _begun
    _begun = (time.monotonic_ns(), time.thread_time_ns())


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
        empty(forget(before))


def _note_not_recorded(reason):
    """Keep why nothing is recorded, but not with other rights than the caller's: where is for the caller to say."""
    from interpose.config import state

    if has_other_rights():
        return
    directory = _directory or settings_file.absolute(os.environ.get("INTERPOSE_DIR") or ".")
    state.note_not_recorded(program_name(sys.orig_argv), os.getpid(), reason, directory)
    if _starter:
        _tell_starter(reason)


def _tell_starter(reason):
    """Have the experiment of the process that started this one say why this one has none."""
    from interpose.experiments.metadata import describe, endings

    about = {"kind": "unrecorded", "time_ns": time.monotonic_ns(), "pid": os.getpid(), "why": reason}
    endings.append(_starter, f"{describe.element('event', **about)}\n".encode())


def forget(before):
    """Restore sys.modules, with as little of interpose left as possible; return the modules that were removed."""
    package = vars(sys.modules["interpose"])
    removed = {}
    for name in set(sys.modules) - before - STAYING_MODULES:
        if name.startswith(OUR_MODULES):
            removed[name] = sys.modules.pop(name)
            package.pop(name.removeprefix("interpose."), None)
    return removed


def empty(modules):
    """Clear the modules that only a start needs. A module's functions and its namespace refer to each other. If they
    stayed, the program's garbage collections would have to visit them, and finally free them."""
    for name in MODULES_OF_START:
        if name in modules:
            vars(modules[name]).clear()


def in_words(error):
    if isinstance(error, OSError) and error.strerror:
        place = error.filename
        shown = os.fsdecode(place) if isinstance(place, str | bytes) else ""
        return f"{shown}: {error.strerror}" if shown else error.strerror
    return str(error) if isinstance(error, InterposeError) else f"{type(error).__name__}: {error}"


def _begin():
    global _directory, _starter
    environment = hide_added(os.environ)
    refuse_what_is_never_recorded()
    parent = environment.get(LINEAGE, "")
    if parent == EXEMPT or (is_exempt(sys.orig_argv) and not is_chosen(parent)):
        _exempt(environment)
        raise NotRecorded
    wanted = in_force.at_start(environment, boot.load_settings)
    _directory = wanted.dir
    if wanted.redact in ("", "off"):  # otherwise nothing is written that cannot be redacted here
        _starter = starter_directory(parent)
    wanted.within = environment.get(WITHIN, "") if parent else ""
    if not wanted.record:
        raise NotRecorded
    if _is_recorded():
        raise NotRecorded  # by another interpreter of this process
    begin_wanted(wanted, parent or find_ancestor(), environment)
    from interpose.timing import shims

    shims.has_started()


def refuse_what_is_never_recorded():
    """Raises NotRecorded, with the reason."""
    if has_other_rights():
        raise NotRecorded("the program runs with another user's rights")


def begin_wanted(wanted, parent, environment):
    """Begin recording this process with the settings; return the directory. `parent` is the process that started it,
    empty for the first. Raises NotRecorded and other errors; nothing is then installed."""
    heed_policy(wanted)
    if "t" in sys.abiflags:
        from interpose.capture import free_threads

        free_threads.leave_out(wanted, environment)
    choose_descendants(wanted)
    choose_redacted(wanted)
    founder, lineage, directory = find_place(parent, wanted)
    try:
        places = library_places(wanted, environment, sys.orig_argv) if "calls" in wanted.record else None
        found = load_libraries(wanted, places) if "calls" in wanted.record else None
        collected = load_collectors(wanted, places) if "calls" in wanted.record else None
        packages = None if found or wanted.by != "place" or "calls" not in wanted.record else Packages(wanted)
        intrinsics = intrinsics_of(wanted, found, everything=not packages, collected=collected)
        record(wanted, founder, lineage, directory, intrinsics, found, packages, collected)
    except BaseException:
        _discard(directory)
        raise
    return directory


def heed_policy(wanted):
    """Have nothing recorded that the administrator forbids. Raises NotRecorded if that is all."""
    if not _may_exist(POLICY):
        return
    from interpose.config import policy

    try:
        forbidden = policy.read(POLICY)
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


def _may_exist(path):
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        pass  # noted where it is read
    return True


def hide_added(environ):
    """The environment as given. Variables that are not the program's are removed from the mapping `environ`, but not
    from what children inherit."""
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

    command = " ".join(sys.orig_argv) if wanted.follow[:1] == "=" else ""
    if wrong := shims.choose_descendants(os.fsencode(wanted.follow), os.fsencode(command)):
        raise SettingError(f"{wanted.said['INTERPOSE_FOLLOW']}: {wrong}")


def choose_redacted(wanted):
    """Set what must not be written. Raises SettingError."""
    from interpose.timing import shims

    shims.choose_arguments(wanted.arguments)
    if wrong := shims.choose_redacted(os.fsencode(wanted.redact)):
        raise SettingError(f"{wanted.said['INTERPOSE_REDACT']}: {wrong}")


def _redacted(shims, text):
    return os.fsdecode(shims.redacted(os.fsencode(text)))


def variables_of(wanted):
    """The variables that descendants get if they lack them: the settings, each `NAME=value` and a zero byte."""
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


def _is_recorded():
    try:
        return boot.is_recorded()
    except ImportError as error:
        if error.name == "interpose.timing":
            raise NotRecorded(_not_installed()) from None
        raise


def _not_installed():
    """The message if this Python found the interpose of another version, which has nothing compiled for it."""
    version = ".".join(map(str, sys.version_info[:2]))
    return f"Python {version} has no interpose; install it there: {sys.executable} -m pip install interpose"


def _discard(directory):
    """Remove the files of a recording that could not begin."""
    try:
        for name in os.listdir(directory):
            os.unlink(os.path.join(directory, name))
        os.rmdir(directory)
    except OSError:
        pass  # descendants are in it


def record(wanted, founder, lineage, directory, intrinsics, found=None, packages=None, collected=None):
    """Begin recording into `directory`, which was made for it. `found` are the libraries other than the system's, if
    any, `packages` declare intrinsics later, `collected` are the data collectors, if any. Raises errors; nothing is
    then installed."""
    from interpose.timing import shims

    shims.prepare_monitor(os.fsencode(sys.executable or ""), b":".join(import_directories()))
    why_not = "" if wanted.by == "place" else "as asked"
    why_not = why_not or shims.works_in_place(sys.modules)
    try:
        paths = [*(found.paths if found else ()), *(collected.paths if collected else ())]
        interposed = ("wrapt", why_not) if why_not else ("place", "")
        call_ns, described = _record(shims, wanted, founder, lineage, directory, interposed, paths)
        if found:
            shims.note_libraries(found.notes)
        # Before anything is in place: other threads may call meanwhile.
        compiled = begin_filter(shims, wanted, not lineage)
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
        follow_programs(shims, wanted, founder, lineage, described, compiled)
        begin_lines(wanted)
        begin_coverage(wanted)
        begin_heap(wanted)
        if "profile" in wanted.record and wanted.profile_hz:
            shims.begin_sampling()
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
    """Record only what the filter of the experiment lets pass, which is the founder's, and return it; what could not be
    done of what was asked is noted."""
    compiled = _compiled_filter(wanted) if is_founder and wanted.filter else b""
    shims.filter_calls(compiled)
    shims.sample_calls(wanted.interval_ns or 0)
    if compiled:
        shims.note_filter(wanted.filter)
    for text in wanted.warnings if is_founder else ():
        shims.warn(text)
    return compiled


def _compiled_filter(wanted):
    from interpose.config import filters, precedence

    if precedence.why_no_filter(wanted.filter, "", precedence.kinds_recorded(wanted)):
        return b""
    found = filters.parse(wanted.filter)
    return found.compiled(_begun[0]) if found else b""


def follow_programs(shims, wanted, founder, lineage, described, compiled):
    """Follow programs that are not Python, too, where native calls are recorded: the founder says how."""
    followed = "native" in wanted.record and wanted.follow != "off"
    shims.follow_programs(followed)
    if not followed or lineage:
        return
    described = {**described, "interposed": (describe.OF_PROGRAMS, "")}
    head = describe.head(shims.format_version(), shims.layout(), **described, arguments=None)
    notes = [(b"filter", wanted.filter)] if compiled else []
    notes += [(b"warning", text) for text in wanted.warnings]
    plan = shims.plan_of_programs(head.encode("utf-8", "replace"), wanted.arguments, compiled, notes)
    with shims.unrecorded():
        names.write_programs(founder, plan)


def begin_lines(wanted):
    """Let the program switch line trace on and off; it is on from the beginning where lines are wanted."""
    if "t" in sys.abiflags:
        return
    switch = switch_lines(wanted)
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


def begin_heap(wanted):
    """Sample what the program allocates, where that is wanted."""
    if "heap" in wanted.record:
        from interpose.timing import shims

        with shims.unrecorded():  # an import of ours
            from interpose.timing import heap

        heap.begin(wanted.heap_bytes)


def _wrap(shims, intrinsics, catch_all):
    """Interpose what wrapt reaches, if requested or if shims in place do not work."""
    from interpose.capture import wrappers

    shims.interpose(wrappers.publish(intrinsics), sys.modules, wrappers.Wrappers(), catch_all)


def _record(shims, wanted, founder, lineage, directory, interposed, paths):
    clock, why = shims.choose_clock(wanted.clock)
    roots = import_roots()
    libraries = [*map(os.fsencode, paths), *library_directories()]
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
        libraries=libraries,
        roots=[os.fsencode(path) for path in roots],
        variables=variables_of(wanted),
    )
    call_ns, inside_ns, read_ns = shims.calibrate()
    cost = {"call_ns": call_ns, "inside_ns": inside_ns, "wait_above_ns": wait_above_ns}
    if wanted.statements:
        cost["statement_ns"] = shims.calibrate_statements()
    described = {
        "version": __version__,
        # The expression may name the secret itself.
        "settings": {**wanted.texts, "INTERPOSE_REDACT": "on" if wanted.redact else "off"},
        "clock": (clock, why, read_ns, time.get_clock_info("monotonic").resolution),
        "cost": cost,
        "interposed": interposed,
        "redacted": (lambda text: _redacted(shims, text)) if wanted.redact else str,
        "trace_parent": shims.choose_trace_parent(
            os.environb.get(b"TRACEPARENT", b""), os.environb.get(b"TRACESTATE", b"") if wanted.propagate else None
        ),
    }
    head = describe.head(
        shims.format_version(),
        shims.layout(),
        **described,
        arguments=_arguments(wanted),
        roots=roots,
        interpreter=shims.interpreter_layout(),
        libraries=[os.fsdecode(path) for path in libraries],
    )
    shims.describe(head.encode("utf-8", "replace"))
    shims.tell_fate()
    return call_ns, described


def _arguments(wanted):
    """What is kept of the command line after the interpreter."""
    if wanted.arguments:
        from interpose.config import levels

        if levels.keeps_whole(wanted.arguments, "process"):
            return sys.orig_argv[1:]
    return kept_arguments(sys.orig_argv)


def choose_transactions(shims, wanted, lineage):
    """Sample one transaction in N, if requested; without a seed, one is drawn and recorded."""
    if wanted.one_in and wanted.seed is None:
        wanted.seed = int.from_bytes(os.urandom(4), "little")
        wanted.texts["INTERPOSE_SEED"] = str(wanted.seed)
    shims.choose_transactions(wanted.seed or 0, wanted.one_in, lineage.encode(), wanted.within)


def _collect(shims, collected):
    from interpose.instrumentation.system_library import collected as ours

    shims.note_libraries(collected.notes)
    shims.collect(collected.chosen, ours.RUNNING, ours.NAMED, ours.INTRINSICS)
