# A call that comes to a stub behind which there are several libraries, by the signature of the C function.

cdef PyObject *run_link(Link link, object real, object instance, tuple arguments, dict keywords) noexcept:
    """A call through the versions, from the current level on; tracebacks have no line of interpose."""
    cdef Passage passage = Passage()
    passage.link = link
    passage.real = real
    passage.instance = instance
    try:
        passage.level = level_here()
        result = passage.go(first_place(link, passage.level), arguments, keywords)
        Py_INCREF(result)
        return <PyObject *>result
    except BaseException as raised:
        if raised is passage.raised:
            raised.__traceback__ = passage.traceback
        PyErr_SetObject(type(raised), raised)
        return NULL


cdef Py_ssize_t first_place(Link link, long level) except -1:
    for place, version in enumerate(link.versions):
        if (<Version>version).intrinsic.order >= level:
            return place
    return len(link.versions)


cdef PyObject *run_function(slot *self, PyObject *owner, PyTypeObject *made, tuple arguments, dict keywords) noexcept:
    """The same for a C function or method."""
    cdef Link link = <Link>self.link
    try:
        real = PyCMethod_New(&link.definition, owner, NULL, made)
    except BaseException as raised:
        PyErr_SetObject(type(raised), raised)
        return NULL
    return run_link(link, real, <object>owner if link.is_method else None, arguments, keywords)


cdef PyObject *run_slot(slot *self, c_signature signature, PyObject *owner, tuple arguments, dict keywords) noexcept:
    cdef Real real = Real()
    real.signature = signature
    real.real = self.real
    real.owner = <object>owner
    real.name = (<Link>self.link).name
    return run_link(<Link>self.link, real, <object>owner, arguments, keywords)


cdef tuple as_tuple(PyObject *const *items, Py_ssize_t count):
    return tuple([<object>items[place] for place in range(count)])


cdef dict as_dict(PyObject *const *items, PyObject *names):
    if names == NULL:
        return {}
    return {name: <object>items[place] for place, name in enumerate(<tuple>names)}


cdef dict keywords_of(PyObject *keywords):
    return <dict>keywords if keywords != NULL else {}


cdef PyObject *link_pair(slot *self, PyObject *owner, PyObject *argument) noexcept:
    cdef Link link = <Link>self.link
    if link.passes():
        return (<pair_body>link.plain)(self, owner, argument)
    if self.shape == SHAPE_TUPLE:
        return run_function(self, owner, NULL, <tuple>argument, {})
    return run_function(self, owner, NULL, (<object>argument,) if self.shape == SHAPE_ONE else (), {})


cdef PyObject *link_triple(slot *self, PyObject *owner, PyObject *arguments, PyObject *keywords) noexcept:
    cdef Link link = <Link>self.link
    if link.passes():
        return (<triple_body>link.plain)(self, owner, arguments, keywords)
    if link.definition.ml_name == NULL:
        return run_slot(self, SIGNATURE_triple, owner, <tuple>arguments, keywords_of(keywords))
    return run_function(self, owner, NULL, <tuple>arguments, keywords_of(keywords))


cdef PyObject *link_fast(slot *self, PyObject *owner, PyObject *const *arguments, Py_ssize_t count) noexcept:
    cdef Link link = <Link>self.link
    if link.passes():
        return (<fast_body>link.plain)(self, owner, arguments, count)
    return run_function(self, owner, NULL, as_tuple(arguments, count), {})


cdef PyObject *link_fast_keywords(
    slot *self, PyObject *owner, PyObject *const *arguments, Py_ssize_t count, PyObject *names
) noexcept:
    cdef Link link = <Link>self.link
    if link.passes():
        return (<fast_keywords_body>link.plain)(self, owner, arguments, count, names)
    return run_function(self, owner, NULL, as_tuple(arguments, count), as_dict(arguments + count, names))


cdef PyObject *link_method(
    slot *self, PyObject *owner, PyTypeObject *made, PyObject *const *arguments, size_t count, PyObject *names
) noexcept:
    cdef Link link = <Link>self.link
    if link.passes():
        return (<method_body>link.plain)(self, owner, made, arguments, count, names)
    return run_function(self, owner, made, as_tuple(arguments, count), as_dict(arguments + count, names))


cdef PyObject *link_vector(
    slot *self, PyObject *function, PyObject *const *arguments, size_t flags, PyObject *names
) noexcept:
    cdef Link link = <Link>self.link
    cdef Py_ssize_t count = PyVectorcall_NARGS(flags)
    cdef Real real
    cdef bint method = self.shape == SHAPE_METHOD and count > 0
    if link.passes():
        return (<vector_body>link.plain)(self, function, arguments, flags, names)
    real = Real()
    real.signature = SIGNATURE_vector
    real.real = self.real
    real.function = <object>function
    keywords = as_dict(arguments + count, names)
    if not method:
        return run_link(link, real, None, as_tuple(arguments, count), keywords)
    real.owner = <object>arguments[0]
    real.is_bound = True
    return run_link(link, real, real.owner, as_tuple(arguments + 1, count - 1), keywords)


cdef PyObject *link_unary(slot *self, PyObject *owner) noexcept:
    cdef Link link = <Link>self.link
    if link.passes():
        return (<unary_body>link.plain)(self, owner)
    return run_slot(self, SIGNATURE_unary, owner, (), {})


cdef int link_initialise(slot *self, PyObject *owner, PyObject *arguments, PyObject *keywords) noexcept:
    cdef Link link = <Link>self.link
    cdef PyObject *result
    if link.passes():
        return (<initialise_body>link.plain)(self, owner, arguments, keywords)
    result = run_slot(self, SIGNATURE_initialise, owner, <tuple>arguments, keywords_of(keywords))
    if result == NULL:
        return -1
    Py_DECREF(<object>result)
    return 0


cdef void *linkers[SIGNATURE_COUNT]
linkers[SIGNATURE_pair] = <void *>link_pair
linkers[SIGNATURE_triple] = <void *>link_triple
linkers[SIGNATURE_fast] = <void *>link_fast
linkers[SIGNATURE_fast_keywords] = <void *>link_fast_keywords
linkers[SIGNATURE_method] = <void *>link_method
linkers[SIGNATURE_vector] = <void *>link_vector
linkers[SIGNATURE_unary] = <void *>link_unary
linkers[SIGNATURE_initialise] = <void *>link_initialise
