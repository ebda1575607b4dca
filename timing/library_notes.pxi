# What is noted of libraries in the map: which there are, and what their wrappers did wrong.

cdef set _noted = set()


cdef bint is_wrappers_own(object raised, Version version) except -1:
    """Not so what comes from outside: an interrupt, a task that is cancelled or closed while the wrapper awaits, an exit
    that a handler of the program's asks for."""
    wrapper = version.intrinsic.wrapper
    if isinstance(raised, Exception):
        return True
    if isinstance(raised, KeyboardInterrupt):
        return False
    if version.is_awaited and not isinstance(raised, SystemExit):
        return False
    traceback = raised.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and traceback.tb_frame.f_globals is said_of(wrapper, "__globals__")


cdef str first_line(object wrapper):
    code = said_of(wrapper, "__code__")
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


cdef str line_of(object raised, object wrapper):
    """The last line of the wrapper's own file that an error came through."""
    code = said_of(wrapper, "__code__")
    found, traceback = first_line(wrapper), raised.__traceback__
    while traceback is not None and code is not None:
        if traceback.tb_frame.f_code.co_filename == code.co_filename:
            found = f"{code.co_filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return found


cdef bint note_failure(object intrinsic, str place, str why) except False:
    """Note it in the map, once, and nowhere else."""
    cdef c_thread *thread
    cdef reading begin
    what = (intrinsic.library, intrinsic.target, why)
    if what in _noted:
        return True
    _noted.add(what)
    thread = recording()
    if thread == NULL:
        return True
    begin = own_begin(thread)
    try:
        fields = {"library": intrinsic.library, "target": intrinsic.target, "place": place, "why": why}
        note_in_map([("failure", fields)])
    except Exception:
        pass
    finally:
        own_end(thread, begin)
    return True


def note_libraries(entries):
    """Note in the map which libraries there are, and which were not used: pairs of an element's name and its fields."""
    note_in_map(entries)
