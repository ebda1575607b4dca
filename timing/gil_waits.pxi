# Waits for the interpreter lock, recorded as calls of an intrinsic (cext/hooks/gil_waits.c).

cdef slot _of_gil_waits


cdef bint know_gil_waits(object intrinsic) except False:
    """From now on they are recorded."""
    cdef const char *why
    _of_gil_waits.intrinsic = 0
    fit(&_of_gil_waits, intrinsic)
    why = gil_waits_begin(&_of_gil_waits)
    if why != NULL:
        raise NotInterposed(why.decode())
    return True
