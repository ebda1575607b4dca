# Data collectors in Python: how one is called, and what is noted about it.

cdef list _collector_names = []  # by the places of collectors
cdef set _collector_notes = set()
cdef object _allocated_blocks = None
cdef int NOTES_AT_MOST = 64

# --- a call

cdef bint call_collector(
    c_collector *collector, interpose_area *area, PyObject **made, int64_t *kept_blocks
) noexcept:
    cdef Area given = Area.__new__(Area)
    cdef PyObject *result
    cdef thread_state *state = PyThreadState_Get()
    function = <object>collector.function  # it may end the recording, and so its own place here
    given.area = area
    given.collector = collector
    Py_INCREF(given)
    made[0] = <PyObject *>given
    if kept_blocks != NULL:
        kept_blocks[0] = -allocated_blocks()
    PyThreadState_EnterTracing(state)
    result = PyObject_CallOneArg_or_null(<PyObject *>function, <PyObject *>given)
    PyThreadState_LeaveTracing(state)
    given.area = NULL  # although claimed texts are kept until all have been called
    if kept_blocks != NULL:
        kept_blocks[0] += allocated_blocks() - given.held_blocks()
    if result == NULL:
        return not collector_raised(collector, function)
    Py_DECREF(<object>result)
    return True


cdef void release_area(PyObject *made) noexcept:
    Py_DECREF(<object>made)


cdef bint collector_raised(c_collector *collector, object function) noexcept:
    """Whether the collector itself raised the current exception. Its own is noted and cleared. One from a signal
    handler of the program is raised in the program as soon as this is over."""
    cdef PyObject *kind
    cdef PyObject *value
    cdef PyObject *where
    PyErr_Fetch(&kind, &value, &where)
    PyErr_NormalizeException(&kind, &value, &where)
    try:
        error = <object>value
        Py_DECREF(<object>kind)
        Py_DECREF(error)
        if where != NULL:
            error.__traceback__ = <object>where
            Py_DECREF(<object>where)
        if is_from_handler(error):
            give_back(error)
            return False
        if isinstance(error, RecursionError):
            return False
        place = line_of_collector(error, function)
        note_collector(collector.place, f"raised {type(error).__name__}: {shortened_text(error)}", place)
    except BaseException:
        PyErr_Clear()
    return True


cdef str shortened_text(object error):
    try:
        return str(error)[:120]
    except BaseException:
        return "?"


cdef bint is_from_handler(object error) except -1:
    """Did a handler for signals raise it, or come by one?"""
    if isinstance(error, KeyboardInterrupt):
        return True
    signals = _modules.get("_signal")
    if signals is None:
        return False
    codes = [said_of(signals.getsignal(number), "__code__") for number in signals.valid_signals()]
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


cdef int raise_given_back(void *error) noexcept:
    raised = <object>error
    Py_DECREF(raised)
    PyErr_SetObject(type(raised), raised)
    return -1


cdef bint give_back(object error) except False:
    """Raised in the main thread, where handlers run, at its next instruction."""
    error.__traceback__ = None
    Py_INCREF(error)
    if Py_AddPendingCall(raise_given_back, <void *>error) < 0:
        Py_DECREF(error)
    return True


cdef str line_of_collector(object error, object function):
    found = first_line(function)
    traceback = error.__traceback__
    file = found.rpartition(":")[0]
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            found = f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found


# --- notes

cdef bint note_collector(uint32_t place, str why, str where) except False:
    """Note it in the map, once."""
    name = _collector_names[place]
    if (name, why) in _collector_notes or len(_collector_notes) >= NOTES_AT_MOST:
        return True
    _collector_notes.add((name, why))
    note_in_map([("failure", {"library": name, "target": "collector", "place": where, "why": why})])
    return True


cdef void note_of_collector(const c_collector *collector, const char *why, bint is_off) noexcept:
    text = why.decode()
    try:
        function = <object>collector.function if collector.function != NULL else None
        where = first_line(function) if function is not None else ""
        note_collector(collector.place, f"switched off: {text}" if is_off else text, where)
    except BaseException:
        PyErr_Clear()


cdef void note_identifier(const c_collector *collector, const char *text) noexcept:
    try:
        what = (_collector_names[collector.place], text.decode("utf-8", "replace"), "identifier")
        if what in _collector_notes or len(_collector_notes) >= NOTES_AT_MOST:
            return
        _collector_notes.add(what)
        note_in_map([("collector", {"name": what[0], "identifier": what[1]})])
    except BaseException:
        PyErr_Clear()


cdef int64_t allocated_blocks() noexcept:
    try:
        return _allocated_blocks()
    except BaseException:
        return 0


# --- the beginning

cdef dict PER = {"event": INTERPOSE_PER_EVENT, "transaction": INTERPOSE_PER_TRANSACTION, "site": INTERPOSE_PER_SITE}


def collect(chosen, str running, str named, intrinsics):
    """Have these data collectors called from now on, in this order: pairs of a name and a declaration
    (interpose.instrumentation.collectors). `running` and `named` are the names of the intrinsics that stand for a collector being
    called and for a transaction that got a name."""
    global _allocated_blocks
    stop_collecting()
    numbers = {each.name: each.number for each in intrinsics}
    if not chosen or identified_begin() < 0:
        return
    _allocated_blocks = getallocatedblocks
    collectors.turn = 0
    collectors.sampled = COLLECTOR_SAMPLED
    collectors.running = numbers[running]
    collectors.named = numbers[named]
    collectors.call = call_collector
    collectors.release = release_area
    collectors.note = note_of_collector
    collectors.identify = note_identifier
    for name, declared in chosen[:COLLECTORS_AT_MOST]:
        add_collector(name, declared)


cdef bint add_collector(str name, object declared) except False:
    cdef uint32_t place = collectors.count
    cdef c_collector *collector = &collectors.all[place]
    encoded = name.encode("utf-8", "replace")
    memset(collector, 0, sizeof(c_collector))
    collector.place = place
    collector.name = string_intern(encoded, len(encoded))
    collector.per = PER[declared.per]
    if declared.native:
        collector.collect = (<const interpose_collector *><size_t>declared.native).collect
    else:
        collector.function = <PyObject *>declared.function
        Py_INCREF(declared.function)
        collectors.in_python |= 1 << place
    _collector_names.append(name)
    for section, prefix in declared.pairs():
        add_section(place, section.encode(), prefix.encode())
    collectors.count += 1
    collectors.on |= 1 << place
    collectors.per[collector.per] |= 1 << place
    return True


cdef bint add_section(uint32_t place, bytes name, bytes prefix) except False:
    cdef c_pseudo_section *section = &pseudo_sections.all[pseudo_sections.count]
    memset(section, 0, sizeof(c_pseudo_section))
    section.collector = place
    strncpy(section.name, name, SECTION_BYTES - 1)
    strncpy(section.prefix, prefix, PREFIX_OF_MODULES - 1)
    pseudo_sections.count += 1
    return True


cdef void stop_collecting():
    """No collector is called any more, and what they kept is let go."""
    collectors.on = collectors.in_python = 0
    for place in range(collectors.count):
        let_go_of_collector(&collectors.all[place])
    collectors.count = pseudo_sections.count = 0
    memset(collectors.per, 0, 3 * sizeof(uint32_t))
    identified_forget()
    _collector_names.clear()
    _collector_notes.clear()


cdef void let_go_of_collector(c_collector *collector):
    cdef PyObject *function = collector.function
    cdef PyObject *work = <PyObject *>collector.work
    collector.function = NULL
    collector.work = NULL
    if function != NULL and work != NULL:
        Py_DECREF(<object>work)
    if function != NULL:
        Py_DECREF(<object>function)


cdef void note_boundary(uint32_t number, Declared intrinsic, bint is_screen):
    """What the end of its calls means for transactions; a read is one only of the screen."""
    if number < COUNTED_NUMBERS:
        collectors.boundaries[number] = (
            (BOUNDARY_IS if intrinsic.is_transaction else BOUNDARY_OTHER if intrinsic.transaction else 0)
            | (BOUNDARY_READS | BOUNDARY_OTHER if intrinsic.terminal and is_screen else 0)
        )
