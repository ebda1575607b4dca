# Waits of an event loop written in C, recorded as calls of an intrinsic (cext/hooks/loop_waits.c).

cdef bint know_loop_waits(object module, Declared intrinsic) except False:
    """From now on, record those of the module. The intrinsic's target is any of its functions, to find its code by."""
    cdef PyMethodDef *definition = definition_of(module_names(module).get(intrinsic.target.rpartition(":")[2]))
    cdef slot *slot = loop_waits_slot()
    cdef const char *why
    if native_is_on():
        raise NotInterposed("its native calls are recorded")
    if definition == NULL or slot == NULL:
        raise NotInterposed(ABSENT)
    fit(slot, intrinsic)
    why = loop_waits_begin(slot, <const void *>definition.ml_meth)
    if why != NULL:
        raise NotInterposed(why.decode())
    return True
