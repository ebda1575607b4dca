"""The shims: what stands in the place of an intrinsic, and how it gets there and away again.

Each shim's body is one of a few, by the signature of the C function that it stands for; it says nothing but: begin, the
real call, end. What those do is in cext/shim.h and cext/recorder.h. Nothing here makes a Python object or a frame while
a call is timed.
"""

import os

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from interpose.timing.clock cimport (
    CLOCK_KINDS,
    clock_choose,
    clock_kind,
    clock_kind_name,
    clock_read,
    reading,
)
from interpose.timing.recorder cimport (
    FORMAT_VERSION,
    block_head_fields,
    c_block,
    c_data_type,
    c_field,
    c_thread,
    data_types,
    file_head_fields,
    open_call_fields,
    own_begin,
    own_end,
    recorder_begin,
    recorder_describe,
    recorder_end,
    recorder_forked,
    recorder_forks,
    recorder_has_forked,
    recorder_map,
    recorder_settings,
    recorder_state,
    recording,
    span,
    c_thread_mark,
    thread_mark,
    thread_rewind,
)

cdef extern from "stubs.h":
    enum:
        STUBS
        DETAIL_NONE
        DETAIL_STATEMENT
        DETAIL_DESCRIPTOR
        DETAIL_WHOLE
        BYTES_NONE
        BYTES_RESULT
    ctypedef int c_signature "enum signature"
    enum:
        SIGNATURE_pair
        SIGNATURE_triple
        SIGNATURE_fast
        SIGNATURE_fast_keywords
        SIGNATURE_method
        SIGNATURE_unary
        SIGNATURE_initialise
        SIGNATURE_COUNT
    struct slot:
        void *body
        void *real
        uint32_t intrinsic
        uint8_t detail
        uint8_t detail_argument
        uint8_t bytes
        uint8_t taken
    slot *slot_take(c_signature)
    void *slot_stub(c_signature, const slot *)
    bint is_stub(const void *)

ctypedef PyObject *(*pair_function)(PyObject *, PyObject *) noexcept
ctypedef PyObject *(*triple_function)(PyObject *, PyObject *, PyObject *) noexcept
ctypedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t) noexcept
ctypedef PyObject *(*fast_keywords_function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *) noexcept
ctypedef PyObject *(*method_function)(
    PyObject *, PyTypeObject *, PyObject *const *, size_t, PyObject *) noexcept
ctypedef PyObject *(*unary_function)(PyObject *) noexcept
ctypedef int (*initialise_function)(PyObject *, PyObject *, PyObject *) noexcept

cdef extern from "shim.h":
    void *recorded_state()
    bint shim_begin(span *, const slot *, PyObject *)
    void shim_end(span *, const slot *, PyObject *, bint)
    PyObject *subject_of_pair(const slot *, PyObject *)
    PyObject *subject_in_tuple(const slot *, PyObject *)
    PyObject *subject_in_array(const slot *, PyObject *const *, Py_ssize_t)
    PyObject *do_nothing(PyObject *, PyObject *)
    int sites_begin()
    void forget_library_prefixes()
    bint add_library_prefix(const char *)

cdef extern from "install.h":
    struct PyMethodDef:
        void *ml_meth
    PyMethodDef *definition_of(object)
    c_signature signature_of(const PyMethodDef *)
    bint takes_one_argument(const PyMethodDef *)
    bint is_writable(const void *)
    void **type_slot(PyTypeObject *, const char *, c_signature *)
    bint exchange_in_types(PyTypeObject *, const char *, void *, void *) except False

cdef extern from "Python.h":
    long PyLong_AsLong(object) except? -1
    bint PyModule_Check(object)
    object PyModule_GetNameObject(object)
    PyObject *PyErr_Occurred()


# --- the bodies, one for each signature

cdef PyObject *time_pair(slot *self, PyObject *owner, PyObject *argument) noexcept:
    cdef span call
    cdef PyObject *result
    if not shim_begin(&call, self, subject_of_pair(self, argument)):
        return (<pair_function>self.real)(owner, argument)
    result = (<pair_function>self.real)(owner, argument)
    shim_end(&call, self, result, result == NULL)
    return result


cdef PyObject *time_triple(slot *self, PyObject *owner, PyObject *arguments, PyObject *keywords) noexcept:
    cdef span call
    cdef PyObject *result
    if not shim_begin(&call, self, subject_in_tuple(self, arguments)):
        return (<triple_function>self.real)(owner, arguments, keywords)
    result = (<triple_function>self.real)(owner, arguments, keywords)
    shim_end(&call, self, result, result == NULL)
    return result


cdef PyObject *time_fast(slot *self, PyObject *owner, PyObject *const *arguments, Py_ssize_t count) noexcept:
    cdef span call
    cdef PyObject *result
    if not shim_begin(&call, self, subject_in_array(self, arguments, count)):
        return (<fast_function>self.real)(owner, arguments, count)
    result = (<fast_function>self.real)(owner, arguments, count)
    shim_end(&call, self, result, result == NULL)
    return result


cdef PyObject *time_fast_keywords(
    slot *self, PyObject *owner, PyObject *const *arguments, Py_ssize_t count, PyObject *names
) noexcept:
    cdef span call
    cdef PyObject *result
    if not shim_begin(&call, self, subject_in_array(self, arguments, count)):
        return (<fast_keywords_function>self.real)(owner, arguments, count, names)
    result = (<fast_keywords_function>self.real)(owner, arguments, count, names)
    shim_end(&call, self, result, result == NULL)
    return result


cdef PyObject *time_method(
    slot *self, PyObject *owner, PyTypeObject *type, PyObject *const *arguments, size_t count, PyObject *names
) noexcept:
    cdef span call
    cdef PyObject *result
    if not shim_begin(&call, self, subject_in_array(self, arguments, <Py_ssize_t>count)):
        return (<method_function>self.real)(owner, type, arguments, count, names)
    result = (<method_function>self.real)(owner, type, arguments, count, names)
    shim_end(&call, self, result, result == NULL)
    return result


# tp_iternext gives NULL without an exception at the end: that is no error.
cdef PyObject *time_unary(slot *self, PyObject *owner) noexcept:
    cdef span call
    cdef PyObject *result
    if not shim_begin(&call, self, NULL):
        return (<unary_function>self.real)(owner)
    result = (<unary_function>self.real)(owner)
    shim_end(&call, self, result, result == NULL and PyErr_Occurred() != NULL)
    return result


cdef int time_initialise(slot *self, PyObject *owner, PyObject *arguments, PyObject *keywords) noexcept:
    cdef span call
    cdef int result
    if not shim_begin(&call, self, subject_in_tuple(self, arguments)):
        return (<initialise_function>self.real)(owner, arguments, keywords)
    result = (<initialise_function>self.real)(owner, arguments, keywords)
    shim_end(&call, self, NULL, result < 0)
    return result


cdef void *bodies[SIGNATURE_COUNT]
bodies[SIGNATURE_pair] = <void *>time_pair
bodies[SIGNATURE_triple] = <void *>time_triple
bodies[SIGNATURE_fast] = <void *>time_fast
bodies[SIGNATURE_fast_keywords] = <void *>time_fast_keywords
bodies[SIGNATURE_method] = <void *>time_method
bodies[SIGNATURE_unary] = <void *>time_unary
bodies[SIGNATURE_initialise] = <void *>time_initialise


# --- the tracer's own hooks, in the same stubs

# threading asks for the identity first thing in a new thread: so a thread is known from its beginning.
cdef PyObject *see_thread(slot *self, PyObject *module, PyObject *argument) noexcept:
    if recorded_state() != NULL:
        recording()
    return (<pair_function>self.real)(module, argument)


# A C module has just come into being: what is declared of it can be interposed.
cdef PyObject *see_import(slot *self, PyObject *importer, PyObject *module) noexcept:
    cdef PyObject *result = (<pair_function>self.real)(importer, module)
    if result != NULL and recorder_state.on and recorded_state() != NULL:
        interpose_module(<object>module)
    return result


# os._exit runs no handlers; the experiment learns the status all the same.
cdef PyObject *see_exit(
    slot *self, PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names
) noexcept:
    if count == 1 and names == NULL:
        end_with_status(<object>arguments[0])
    return (<fast_keywords_function>self.real)(module, arguments, count, names)


cdef void end_with_status(object status) noexcept:
    cdef long value
    if type(status) is int:
        try:
            value = PyLong_AsLong(status)
        except OverflowError:
            return
        if -(1 << 31) <= value < 1 << 31:
            recorder_end(<int>(value & 0xff))


# --- putting shims in place

class NotInterposed(Exception):
    """Why an intrinsic could not be interposed, in a few words."""


cdef class Installed:
    """A stub in the place of a function or of a type's slot, and its undo."""

    cdef c_signature signature
    cdef slot *slot
    cdef PyMethodDef *definition
    cdef object type
    cdef bytes method

    cdef void *stub(self) noexcept:
        return slot_stub(self.signature, self.slot)

    cdef void put_in_definition(self, PyMethodDef *definition) noexcept:
        self.definition = definition
        self.slot.real = definition.ml_meth
        definition.ml_meth = self.stub()

    cdef bint put_in_type(self, object type, bytes method, void *real) except False:
        self.type = type
        self.method = method
        self.slot.real = real
        return exchange_in_types(<PyTypeObject *>type, method, real, self.stub())

    def restore(self):
        """Put the real function back; False where somebody else has put his own upon ours since."""
        if self.definition == NULL:
            exchange_in_types(<PyTypeObject *>self.type, self.method, self.stub(), self.slot.real)
        elif self.definition.ml_meth == self.stub():
            self.definition.ml_meth = self.slot.real
        else:
            return False
        self.slot.taken = 0
        return True


cdef slot *new_slot(c_signature signature, void *body) except NULL:
    cdef slot *slot = slot_take(signature)
    if slot == NULL:
        raise NotInterposed("the pool of stubs for its signature is full")
    slot.body = body
    return slot


cdef Installed put_method(object function, void *body, c_signature wanted):
    """A stub for a C function or method; `body` NULL means the shim for its signature."""
    cdef PyMethodDef *definition = definition_of(function)
    cdef Installed installed = Installed()
    if definition == NULL:
        raise NotInterposed("it has no method table")
    installed.signature = signature_of(definition)
    if installed.signature == SIGNATURE_COUNT or (body != NULL and installed.signature != wanted):
        raise NotInterposed("its signature is unknown")
    if is_stub(definition.ml_meth):
        raise NotInterposed("it is interposed already")
    if not is_writable(&definition.ml_meth):
        raise NotInterposed("its method table is read-only")
    installed.slot = new_slot(installed.signature, body if body != NULL else bodies[installed.signature])
    installed.put_in_definition(definition)
    return installed


cdef Installed put_slot(type owner, bytes method):
    """A stub for a type's slot, in the type and in the subclasses that copied it."""
    cdef c_signature signature = SIGNATURE_COUNT
    cdef void **place = type_slot(<PyTypeObject *>owner, method, &signature)
    cdef Installed installed = Installed()
    if place == NULL or place[0] == NULL:
        raise NotInterposed("it has no such slot")
    if is_stub(place[0]):
        raise NotInterposed("it is interposed already")
    installed.signature = signature
    installed.slot = new_slot(signature, bodies[signature])
    installed.put_in_type(owner, method, place[0])
    return installed


cdef object find(object module, str qualified):
    """What stands in the dictionaries under a qualified name, with its owner: no attribute of anybody's is run."""
    cdef object owner = None, found = module
    for name in qualified.split("."):
        owner = found
        names = owner.__dict__ if owner is module else type.__getattribute__(owner, "__dict__")
        if name not in names:
            raise NotInterposed("this Python has no such name")
        found = names[name]
    return owner, found


DETAILS = {"": DETAIL_NONE, "statement": DETAIL_STATEMENT, "descriptor": DETAIL_DESCRIPTOR}
BYTES = {"": BYTES_NONE, "result": BYTES_RESULT}


cdef Installed put(object module, object intrinsic):
    cdef Installed installed
    owner, found = find(module, intrinsic.qualified)
    if isinstance(owner, type) and type(found).__name__ == "wrapper_descriptor":
        installed = put_slot(owner, intrinsic.qualified.rpartition(".")[2].encode())
    else:
        installed = put_method(found, NULL, SIGNATURE_COUNT)
    installed.slot.intrinsic = intrinsic.number
    installed.slot.detail = DETAILS[intrinsic.detail]
    installed.slot.bytes = BYTES[intrinsic.bytes]
    installed.slot.detail_argument = intrinsic.argument
    if installed.definition != NULL and takes_one_argument(installed.definition):
        installed.slot.detail_argument = DETAIL_WHOLE
    return installed


# --- the session

cdef dict _declared = {}   # module name: intrinsics declared of it, not yet interposed
cdef list _installed = []
cdef list _hooks = []
cdef reading _starting  # when the recording's own beginning began; its end is that of `interpose`


cdef str escape(str text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


cdef str map_entry(object intrinsic, str by, str why):
    fields = (
        ("number", str(intrinsic.number)), ("name", intrinsic.name), ("kind", intrinsic.kind),
        ("library", intrinsic.library), ("by", by), ("installed", "0" if why else "1"), ("why", why),
    )
    written = "".join([f' {name}="{escape(value)}"' for name, value in fields if value or name != "why"])
    return f"  <intrinsic{written}/>\n"


cdef str interpose_intrinsic(object module, object intrinsic):
    """Interpose it, and give its entry for the map."""
    cdef Installed installed
    try:
        installed = put(module, intrinsic)
    except NotInterposed as reason:
        return map_entry(intrinsic, "", str(reason))
    _installed.append(installed)
    return map_entry(intrinsic, "method table" if installed.definition != NULL else "slot", "")


# The program's import goes on whatever happens here.
cdef void interpose_module(object module) noexcept:
    cdef c_thread *thread = recording()
    cdef reading begin
    if thread == NULL or not PyModule_Check(module):
        return
    begin = own_begin(thread)
    try:
        intrinsics = _declared.pop(PyModule_GetNameObject(module), ())
        entries = "".join([interpose_intrinsic(module, intrinsic) for intrinsic in intrinsics])
        if entries:
            encoded = f"{entries}</map>\n".encode("utf-8", "replace")
            recorder_map(encoded, len(encoded))
    except Exception:
        pass
    own_end(thread, begin)


cdef void put_hook(object module, str name, void *body, c_signature signature):
    try:
        _hooks.append(put_method(module.__dict__[name], body, signature))
    except (KeyError, NotInterposed):
        pass  # what it would have told is learned later: a thread at its first call, an end by the reader


def choose_clock(str wanted):
    """The name of the clock to be used, the wanted one or the next that can be had, and why."""
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


def begin(bytes directory, bytes founder, bytes lineage, *, str clock, bint stacks, uint64_t stack_above_ns,
          uint64_t begun_wall_ns, uint64_t begun_cpu_ns, libraries):
    """Begin recording into `directory`, which exists; raises OSError.

    The times are since when this process's time counts, in nanoseconds of the monotonic and the calling thread's CPU
    clock. `libraries` are the directories (bytes, ending with a slash) of code that is not the program's own.
    """
    cdef recorder_settings settings
    cdef int failed
    settings.directory = directory
    settings.founder = founder
    settings.lineage = lineage
    settings.clock = kind_named(clock)
    settings.stack_kept = stacks
    settings.stack_above_ns = stack_above_ns
    settings.begun_wall_ns = begun_wall_ns
    settings.begun_cpu_ns = begun_cpu_ns
    if sites_begin() < 0:
        raise MemoryError("no room for what is known of code objects")
    forget_library_prefixes()
    for prefix in libraries:
        add_library_prefix(prefix)
    failed = recorder_begin(&settings)
    if failed:
        raise OSError(failed, os.strerror(failed), directory)
    global _starting
    _starting = own_begin(recording())


def describe(bytes head):
    """Write log.xml, which begins with `head`, and an empty map.xml; raises OSError."""
    cdef int failed = recorder_describe(head, len(head))
    if failed:
        raise OSError(failed, os.strerror(failed), "log.xml")


cdef uint64_t least_wall(c_block *block, uint32_t first):
    """The shortest of the block's events from `first` on: what two readings see of themselves."""
    cdef uint64_t least = 1 << 60
    cdef uint32_t index
    for index in range(first, block.head.used):
        least = min(least, block.events[index].wall_ns)
    return least


cdef uint64_t time_calls(c_thread *thread, pair_function stub):
    """Mean time of a call of nothing through a stub, in nanoseconds."""
    cdef reading begin = clock_read(&thread.clock), end
    cdef int index
    for index in range(64):
        stub(NULL, <PyObject *>None)
    end = clock_read(&thread.clock)
    return (end.wall_ns - begin.wall_ns) // 64


cdef uint64_t time_readings(c_thread *thread):
    """Mean time of a clock reading, in nanoseconds."""
    cdef reading begin = clock_read(&thread.clock), end
    cdef int index
    for index in range(64):
        clock_read(&thread.clock)
    end = clock_read(&thread.clock)
    return (end.wall_ns - begin.wall_ns) // 64


def calibrate():
    """What a recorded call of nothing costs, what of it lies between its own two clock readings, and what one reading
    costs: (call, inside, reading) in nanoseconds, each the least of several measurements."""
    cdef c_thread *thread = recording()
    cdef slot *slot = new_slot(SIGNATURE_pair, <void *>time_pair)
    cdef pair_function stub = <pair_function>slot_stub(SIGNATURE_pair, slot)
    cdef c_thread_mark mark = thread_mark(thread)
    slot.real = <void *>do_nothing
    slot.intrinsic = 0
    slot.detail = DETAIL_NONE
    slot.bytes = BYTES_NONE
    stub(NULL, <PyObject *>None)
    call_ns = min([time_calls(thread, stub) for _ in range(8)])
    read_ns = min([time_readings(thread) for _ in range(8)])
    inside_ns = min(least_wall(thread.block, mark.used), call_ns) if thread.block != NULL else read_ns
    slot.taken = 0
    thread_rewind(thread, mark)
    return call_ns, inside_ns, read_ns


def interpose(intrinsics, modules):
    """Put shims in the place of `intrinsics`: now in the modules that exist, in others when they are imported."""
    _declared.clear()
    for intrinsic in intrinsics:
        _declared.setdefault(intrinsic.module, []).append(intrinsic)
    for name in list(_declared):
        if name in modules:
            interpose_module(modules[name])
    put_hook(modules["_imp"], "exec_dynamic", <void *>see_import, SIGNATURE_pair)
    put_hook(modules["_imp"], "exec_builtin", <void *>see_import, SIGNATURE_pair)
    put_hook(modules["posix"], "_exit", <void *>see_exit, SIGNATURE_fast_keywords)
    if "_thread" in modules:
        put_hook(modules["_thread"], "get_ident", <void *>see_thread, SIGNATURE_pair)
    own_end(recording(), _starting)


def forks():
    """Before a fork: its number is the parent's to give."""
    recorder_forks()


def has_forked():
    """After it, in the parent."""
    recorder_has_forked()


def forked():
    """After it, in the child: begin its subexperiment."""
    recorder_forked()


def end():
    """End the recording and put back whatever was interposed; gives how many could not be put back, because somebody
    else has put his own upon ours since (ours pass through)."""
    recorder_end(-1)
    left = [installed for installed in _installed + _hooks if not installed.restore()]
    _installed.clear()
    _hooks.clear()
    _declared.clear()
    return len(left)


def is_recording():
    """Is anything being recorded in this process?"""
    return bool(recorder_state.on)


def drift_clock(long ahead_ns):
    """As if the calling thread's CPU clock were ahead by so many nanoseconds, or behind. For tests."""
    cdef c_thread *thread = recording()
    if thread != NULL:
        thread.clock.sync_cpu_ns += ahead_ns
        thread.clock.last_cpu_ns = thread.clock.sync_cpu_ns


# --- how records are packed

cdef list fields_of(const c_field *fields):
    cdef list found = []
    while fields != NULL and fields.name != NULL:
        found.append((fields.name.decode(), fields.type.decode(), fields.offset, fields.title.decode()))
        fields += 1
    return found


def layout():
    """How each type of data is packed: [(name, record bytes, head bytes, block bytes, [field])], and the fields of a
    file's head, a block's head and an entry in the table of calls in progress; a field is (name, type, offset, title)."""
    cdef const c_data_type *described = data_types
    types = []
    while described.name != NULL:
        types.append((described.name.decode(), described.record_bytes, described.head_bytes, described.block_bytes,
                      fields_of(described.fields)))
        described += 1
    return types, fields_of(file_head_fields), fields_of(block_head_fields), fields_of(open_call_fields)


def format_version():
    """The version of the format that is written."""
    return FORMAT_VERSION
