# Waits of an event loop that is written in C, recorded as calls of an intrinsic (cext/hooks/loop_waits.c).

cdef bint know_loop_waits(object module, Declared intrinsic) except False:
    """From now on those of the module are recorded. The intrinsic's target is any function of its, which says where its code is."""
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
