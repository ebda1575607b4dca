# Transactions that the program marks itself: interpose.transaction as it is while something is recorded.

cdef Timed _marks = None  # how marked transactions are recorded; None if they are not
cdef object _marked_intrinsic = None
cdef int CO_GENERATOR = 0x20


cdef bint know_marks(object intrinsic) except False:
    """Record marks, from now on, as calls of that intrinsic."""
    global _marks, _marked_intrinsic, marking
    _marks = Timed(intrinsic)
    _marked_intrinsic = intrinsic
    marking = intrinsic.number
    return True


cdef void forget_marks():
    """Before another recording: after the end of one, a thread may still be at a mark."""
    global _marks, marking
    _marks = None
    marking = 0


cdef class transaction:
    """Marks a block (`with transaction("checkout"):`) or a function (`@transaction("checkout")`) as a transaction.

    It keeps no state of calls in progress, so it can be entered again, and on several threads.
    """

    cdef readonly str name
    cdef uint32_t number  # of the name in strings, of the recording `serial`
    cdef uint32_t serial

    def __init__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"the name of a transaction must be a str, not {type(name).__name__}")
        self.name = str(name)

    def __enter__(self):
        cdef PyObject *coroutine
        if _marks is not None and recording() != NULL:
            coroutine = mark_enter(&_marks.slot, number_of_name(self))
            if coroutine != NULL:
                see_steps_of(<object>coroutine)
        return self

    def __exit__(self, *error):
        if _marks is None or not recorder_is_on() or self.serial != recorder_state.serial:
            return
        if len(error) == 3 and isinstance(error[1], BaseException):
            exit_with_error(self, error[1])
        else:
            mark_exit(&_marks.slot, self.number, False)

    def __call__(self, function):
        """The function itself: from now on each of its calls is a transaction."""
        inner = function.__func__ if type(function) in (staticmethod, classmethod) else function
        try:
            mark_function(inner, self.name)
        except Exception as error:
            unmarked_add(for_log(str(error), NOTE_LETTERS).encode("utf-8", "replace"))  # it remains the function itself
        return function


cdef bint see_steps_of(object coroutine) except False:
    know_awaits_quietly()
    see_steps(<PyObject *>coroutine)
    return True


cdef bint know_awaits_quietly() except False:
    """Python's awaitable types are examined once, which is not recorded as the program's."""
    cdef c_thread *thread = recording()
    if not _awaits_known and thread != NULL:
        thread.quiet += 1
        try:
            know_awaits()
        except Exception:
            pass
        finally:
            thread.quiet -= 1
    return True


cdef bint exit_with_error(transaction made, object error) except False:
    """The end of a call looks for the current exception; here it is one that is already being handled."""
    cdef PyObject *where = NULL
    kind, traceback = type(error), error.__traceback__
    Py_INCREF(kind)
    Py_INCREF(error)
    if traceback is not None:
        Py_INCREF(traceback)
        where = <PyObject *>traceback
    PyErr_Restore(<PyObject *>kind, <PyObject *>error, where)
    mark_exit(&_marks.slot, made.number, True)
    PyErr_Clear()
    return True


cdef uint32_t number_of_name(transaction made) except? 0:
    if read_first(&made.serial) != recorder_state.serial or filter_state.by_transaction:  # which has its own number for that
        encoded = made.name.encode("utf-8", "replace")
        made.number = argument_intern(KIND_logic, encoded, len(encoded))
        write_last(&made.serial, recorder_state.serial)
    return made.number


cdef bint mark_function(object function, str name) except False:
    """Replace its vectorcall by a stub. Callables that are not Python functions, and functions that make generators,
    whose steps cannot be told apart, are left as they are."""
    cdef Installed installed = Installed()
    if _marks is None or _marks.slot.levels[0] == LEVEL_off or recording() == NULL or not is_python_function(function):
        return True
    flags = function.__code__.co_flags
    if flags & (CO_GENERATOR | CO_ASYNC_GENERATOR) or is_stub(function_vectorcall(function)):
        return True
    if flags & CO_COROUTINE:
        know_awaits_quietly()
    installed.signature = SIGNATURE_vector
    installed.slot = new_function_slot(function, <void *>time_awaited)
    fit(installed.slot, _marked_intrinsic)
    installed.slot.levels[0] = _marks.slot.levels[0]
    installed.slot.lowered = _marks.slot.lowered
    installed.slot.keyword = kept_for_ever(name)
    slot_is_fit(installed.slot)
    installed.put_in_function(function)
    _installed[installed] = True
    return True
