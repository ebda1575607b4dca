# Calls that are not recorded, because they are recording's own.

def hush():
    """What the calling thread calls from now on is not recorded."""
    recorder_hush()


cdef class RaisedLater:
    """Raises an exception of the class in the calling thread as soon as this is released; the caller continues."""

    cdef PyObject *error

    def __init__(self, error):
        Py_INCREF(error)
        self.error = <PyObject *>error

    def __dealloc__(self):
        if self.error != NULL:
            PyThreadState_SetAsyncExc(PyThread_get_thread_ident(), self.error)
            Py_DECREF(<object>self.error)


cdef class unrecorded:
    """As long as it is entered what the calling thread calls is not recorded, and its time is recording's own."""

    cdef reading begun
    cdef c_thread *thread

    def __enter__(self):
        self.thread = recording()
        if self.thread != NULL:
            self.begun = own_begin(self.thread)
            self.thread.quiet += 1
        return self

    def __exit__(self, *error):
        if self.thread != NULL and self.thread == recording() and self.thread.quiet:
            self.thread.quiet -= 1
            own_end_apart(self.thread, self.begun)
        self.thread = NULL
