# Threads that are begun inside a wrapper go on behind its library.

cdef class Carried:
    """What a thread runs that was started inside a wrapper: calls are resolved from the same level on."""

    cdef object function
    cdef long level

    def __call__(self, *arguments, **keywords):
        enter_level(self.level)
        self.enter_context()
        return self.function(*arguments, **keywords)

    def enter(self):
        enter_level(self.level)

    cdef bint enter_context(self) except False:
        """From 3.14 on threading runs what a thread is for in a context of its own, new and empty if none was given."""
        if not THREADS_HAVE_CONTEXTS or not PyMethod_Check(self.function):
            return True
        names = said_of(self.function.__self__, "__dict__")
        context = names.get("_context") if type(names) is dict else None
        if PyContext_CheckExact(context) and len(context) == 0:
            context.run(self.enter)
        return True


cdef tuple carried(PyObject *arguments):
    cdef Carried inner
    cdef tuple given = <tuple>arguments
    cdef long level = level_here() if recorded_state() != NULL else 0
    if level == 0 or not given or not callable(given[0]):
        return given
    inner = Carried()
    inner.function, inner.level = given[0], level
    return (inner, *given[1:])


cdef PyObject *carry_pair(slot *self, PyObject *module, PyObject *arguments) noexcept:
    given = carried(arguments)
    return (<pair_function>self.real)(module, <PyObject *>given)


cdef PyObject *carry_triple(slot *self, PyObject *module, PyObject *arguments, PyObject *keywords) noexcept:
    given = carried(arguments)
    return (<triple_function>self.real)(module, <PyObject *>given, keywords)
