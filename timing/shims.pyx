# cython: binding=False, auto_pickle=False
# (Plain functions: the start of each recorded program would take two objects more for each of the hundred here.)
"""The shims: the timing code that replaces an intrinsic, and how it is installed and removed.

Each shim has one of a few bodies, by the signature of its C function. A body says only: begin, real call, end;
cext/hooks/hot_path.c and cext/core/spans.h do the rest. No Python object and no frame is made while a call is timed.
This file is the session; the files that it includes have one job each.
"""

from cython cimport boundscheck, freelist, no_gc, wraparound

import os
from _weakref import ref
from sys import getallocatedblocks, intern as intern_text, stdlib_module_names


cdef object builtin_function = type(len)
cdef dict _declared = {}   # module name: intrinsics declared of it, or what they are packed in
cdef tuple _shared = ()    # values of packed declarations
cdef object _packages = None  # what declares the intrinsics of packages when these are imported
cdef set _to_come = set()  # packages of which nothing is declared yet
cdef dict _seen = {}       # module name: a weak reference to the module that was seen last
cdef dict _mapped = {}     # number of an intrinsic that is in the map: why it is not interposed, or nothing
cdef dict _modules = {}    # sys.modules
cdef uint32_t _modules_seen = 0  # how many there were at the last look
cdef dict _locks_seen = {}  # types of locks with a visible state
cdef dict _installed = {}  # their set, in order: any number of them may go at once
cdef list _hooks = []
cdef object _wrappers = None  # what interposes instead of shims in place
cdef dict _kept = {}       # types with a known address, by their modules' names
cdef bint _forks_are_told = False
cdef str NO_SUCH_INIT = "CPython calls such an __init__ directly, past what stands in its place"
cdef str NO_AWAITS = "awaits: not yet in a free-threaded interpreter"
cdef Py_ssize_t NOTE_LETTERS = 60  # notes must fit whatever characters they have
cdef uint32_t _next_number = 1  # of what patterns are found to stand for
cdef reading _starting  # when the recording's own beginning began; its end is that of `interpose`


include "intrinsics.pxi"
include "own_hooks.pxi"
include "installed.pxi"
include "slots.pxi"
include "qualified_names.pxi"
include "wrapt.pxi"
include "libraries.pxi"
include "map_text.pxi"
include "library_notes.pxi"
include "links.pxi"
include "linking.pxi"
include "carried_threads.pxi"
include "declarations.pxi"
include "modules.pxi"
include "calibration.pxi"
include "levels.pxi"
include "marks.pxi"
include "gil_waits.pxi"
include "loop_waits.pxi"
include "native.pxi"
include "control.pxi"
include "collector_area.pxi"
include "collectors.pxi"
include "native_collectors.pxi"
include "packing.pxi"
include "traces.pxi"
include "monitor.pxi"
include "descendants.pxi"
include "programs.pxi"
include "unrecorded.pxi"


def choose_clock(str wanted):
    """The name of the clock to use, the requested one or the next that works, and why."""
    cdef const char *why
    cdef clock_kind kind
    for number in range(CLOCK_KINDS):
        if clock_kind_name(<clock_kind>number).decode() == wanted:
            kind = clock_choose(<clock_kind>number, &why)
            return clock_kind_name(kind).decode(), why.decode()
    raise ValueError(f"no clock of that name: {wanted}")


cdef clock_kind kind_named(str name) except *:
    for number in range(CLOCK_KINDS):
        if clock_kind_name(<clock_kind>number).decode() == name:
            return <clock_kind>number
    raise ValueError(f"no clock of that name: {name}")


cdef put_setting(recorder_settings *settings, const setting_field *field, value):
    """Give a field its value; returns what has to live as long as the settings."""
    cdef char *place = <char *>settings + field.offset
    if field.type == SETTING_text:
        value = os.fsencode(value)
        (<const char **>place)[0] = value
    elif field.type == SETTING_number:
        (<uint64_t *>place)[0] = NEVER if value is None else value
    elif field.type == SETTING_flag:
        (<uint32_t *>place)[0] = bool(value)
    elif field.type == SETTING_clock:
        (<uint32_t *>place)[0] = kind_named(value)
    elif field.type == SETTING_rows:
        (<uint32_t *>place)[0] = number_of(rows_words, value)
    return value


def begin(wanted, *, libraries, roots, bytes variables=b"", **found):
    """Begin recording into `directory`, which exists; raises OSError.

    Each field of cext/core/settings.h is what was `found` under its name, otherwise the attribute of `wanted`. The
    times are when this process's time begins, in nanoseconds of the monotonic and the calling thread's CPU clock.
    `libraries` are the directories (bytes, ending with a slash) of code that is not the program's own, `roots` those
    that the program imports from. `variables`, each `NAME=value` and a zero byte, are given to descendants that lack
    them.
    """
    cdef recorder_settings settings
    cdef const setting_field *field = recorder_settings_fields
    cdef int failed
    cdef list kept = []
    while field.name != NULL:
        name = field.name.decode()
        kept.append(put_setting(&settings, field, found.pop(name) if name in found else getattr(wanted, name)))
        field += 1
    if "native" in wanted.record:
        tell_programs_of_settings(&settings)
    if found:
        raise TypeError(f"no fields of the settings: {', '.join(found)}")
    if side_locks_prepare():
        raise MemoryError("no room for locks")
    shims_begin()
    forget_holders()
    forget_descriptors()
    awaits_forget()
    if details_begin() < 0 or plain_begin() < 0 or trace_headers_begin() < 0 or active_spans_begin() < 0 or sites_begin(release_sites) < 0:
        raise MemoryError("no room for what is known of code objects")
    forget_library_prefixes()
    for prefix in libraries:
        add_library_prefix(prefix)
    forget_roots()
    for root in roots:
        add_known_root(root)
    failed = variables_keep(variables, len(variables)) or recorder_begin(&settings)
    if failed:
        raise OSError(failed, os.strerror(failed), os.fsdecode(settings.directory))
    global _starting
    _starting = own_begin(recording())


def describe(bytes head):
    """Write log.xml, which begins with `head`, and an empty map.xml; raises OSError."""
    cdef int failed = recorder_describe(head, len(head))
    if failed:
        raise OSError(failed, os.strerror(failed), "log.xml")


def interpose(intrinsics, modules, wrappers=None, catch_all=None, packages=None):
    """Put shims in the place of `intrinsics`, a list or what the bundle packed: now in the modules that exist, in others
    when they are imported.

    `wrappers`, where given, wrap each instead (interpose.capture.wrappers). `catch_all`, where given, is called with the library
    and the target of a name that a module has not; it may give another target. `packages`, where given, declares
    what there is of the packages of its `names` when they are imported.
    """
    global _modules, _wrappers, _next_number, _packages
    forget_marks()
    forget_events()
    _wrappers = wrappers
    _packages = packages
    _to_come.clear()
    _to_come.update([] if packages is None else packages.names)
    if wrappers is not None:
        know_awaits()
    _declared.clear()
    _seen.clear()
    _mapped.clear()
    _next_number = 1
    forget_number_kinds()
    transactions_forget()
    if UNSUPPORTED != NULL:
        note(UNSUPPORTED.decode())
    found = []  # what is packed has no wrappers
    if is_packed(intrinsics):
        declare_packed(intrinsics)
    else:
        found = declarations(intrinsics)
    for intrinsic in found:
        declare(intrinsic)
        _next_number = max(_next_number, number_after(intrinsic))
    libraries_begin(found, modules, catch_all)
    look_at_locks(modules)
    _modules = modules
    write_last(&_modules_seen, 0)
    interpose_new_modules()
    put_hook(modules["_imp"], "release_lock", <void *>see_import, SIGNATURE_pair)
    put_hook(modules["posix"], "_exit", <void *>see_exit, SIGNATURE_fast_keywords)
    if "_thread" in modules:
        put_hook(modules["_thread"], "get_ident", <void *>see_thread, SIGNATURE_pair)
    rehash(list(_installed) + _hooks)
    own_end(recording(), _starting)


def choose_arguments(kept):
    """Set how much is kept of what calls were about: for each kind the number of one of HOW_MUCH in
    cext/core/detail_levels.h, or 0 for the default."""
    for kind in range(KIND_COUNT):
        arguments_choose(kind, kept.get(kind_words[kind].decode(), 0))


def choose_redacted(bytes expression):
    """From now on, write nothing that the expression matches; returns what is wrong with it."""
    cdef const char *wrong = redact_choose(expression)
    return wrong.decode("utf-8", "replace") if wrong != NULL else ""


def redacted(bytes text):
    """The text as it may be written."""
    cdef size_t left = len(text)
    cdef char *found = redact(text, &left)
    if found == NULL:
        return text if left else b""
    try:
        return found[:left]
    finally:
        free(found)


cdef str for_log(str text, Py_ssize_t letters):
    """The beginning of a text, as long as an attribute in the log can be."""
    return escape(redacted(text.encode("utf-8", "replace")).decode("utf-8", "replace")[:letters])


def end(bint detached=False):
    """End the recording and restore what was interposed; returns how many could not be restored, because somebody else
    has replaced them since (these pass calls through). `detached`: the program continues, and the experiment's files
    are unmapped."""
    cdef bint alone = installing_begin()  # a thread that imports meanwhile finds the end, and puts nothing in place any more
    try:
        return end_all(detached)
    finally:
        if alone:
            installing_end()


cdef Py_ssize_t end_all(bint detached) except -1:
    global _shared
    for name in ("interpose.timing.lines", "interpose.timing.coverage", "interpose.timing.heap"):
        module = _modules.get(name)
        if module is not None:
            module.end()
    if detached:
        recorder_detach()
    else:
        recorder_end(-1)
    greenlets_end()
    installed = list(_installed) + _hooks
    left = [each for each in installed if not each.restore()]
    rehash(installed)
    left += [None] * (_wrappers.restore() if _wrappers is not None else 0)
    _installed.clear()
    _timed_by_wrapt.clear()
    left += [] if gil_waits_end() else [None]
    left += [] if loop_waits_end() else [None]
    left += [] if child_waits_end() else [None]
    left += [] if forked_exec_end() else [None]
    left += [None] * native_end_all()
    tell_lines_as(NULL)
    stop_collecting()
    _hooks.clear()
    _declared.clear()
    _shared = ()
    _to_come.clear()
    _kept.clear()
    tasks_forget()
    descriptor_owner_add(0, NULL, NULL)
    descriptor_owner_add(1, NULL, NULL)
    descriptor_owner_add(2, NULL, NULL)
    forget_all()
    return len(left)


cdef void forget_all():
    """What only a recording needs."""
    global _packages, _wrappers, _catch_all
    _packages = _wrappers = _catch_all = None
    _seen.clear()
    _mapped.clear()


def note(str what):
    """Have the log say that something was not recorded, and why."""
    text = f'what="calls" why="{for_log(what, NOTE_LETTERS)}" '.encode("utf-8", "replace")
    recorder_say(b"missed", text)


def is_recording():
    """Is anything being recorded in this process?"""
    return recorder_is_on()


def directory():
    """Where this process is recorded, as bytes; None if it is not, or no longer."""
    cdef const char *path = recorder_directory()
    return path if path != NULL else None


def drift_clock(long ahead_ns):
    """Put the calling thread's CPU clock ahead by this many nanoseconds, or behind. For tests."""
    cdef c_thread *thread = recording()
    if thread != NULL:
        thread.clock.sync_cpu_ns += ahead_ns
        thread.clock.last_cpu_ns = thread.clock.sync_cpu_ns
