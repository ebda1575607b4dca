# Waits of an event loop that is written in C, recorded as calls of an intrinsic (cext/hooks/loop_waits.c).

cdef slot _of_loop_waits


cdef bint know_loop_waits(object module, Declared intrinsic) except False:
    """From now on those of the module are recorded. The intrinsic's target is any function of its, which says where its code is."""
    cdef PyMethodDef *definition = definition_of(module_names(module).get(intrinsic.target.rpartition(":")[2]))
    cdef const char *why
    if native_is_on():
        raise NotInterposed("its native calls are recorded")
    if loop_waits_are_on():
        raise NotInterposed("another loop's are recorded")
    if definition == NULL:
        raise NotInterposed(ABSENT)
    fit(&_of_loop_waits, intrinsic)
    why = loop_waits_begin(&_of_loop_waits, <const void *>definition.ml_meth)
    if why != NULL:
        raise NotInterposed(why.decode())
    return True
