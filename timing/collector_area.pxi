# What a data collector in Python is given.

cdef int IDENTIFIER_BYTES = 63


@freelist(8)
@no_gc
cdef class Area:
    """What is known about a call that has ended. It is empty once the collector has returned.

    Only `module`, `base`, `size`, `section`, `statement`, `transaction`, `identifier` and `work` can be changed.
    """

    cdef interpose_area *area     # NULL when the call is over
    cdef c_collector *collector
    cdef object module_text, section_text, transaction_text  # keeps claimed texts alive
    cdef bytearray room

    cdef object known(self, const char *text, unsigned index):
        """A text that is likely to be the one cached at that place."""
        cdef PyObject *kept
        if text == NULL:
            return None
        kept = (<const c_told *>self.area).place.texts[index]
        if kept != NULL and PyUnicode_AsUTF8(<object>kept) == text:
            return <object>kept
        return text.decode("utf-8", "replace")

    cdef interpose_area *here(self) except NULL:
        if self.area == NULL:
            raise ValueError("the area of a call that is over")
        return self.area

    cdef int64_t held_blocks(self) noexcept:
        """The number of memory blocks that it holds for claimed texts."""
        cdef int64_t held = 2 if self.room is not None else 0
        return held + (self.module_text is not None) + (self.section_text is not None) + (
            self.transaction_text is not None
        )

    @property
    def task(self):
        """The asynchronous task, or 0."""
        return self.here().task

    @property
    def thread(self):
        """The kernel's number of the calling thread."""
        return self.here().thread

    @property
    def code(self):
        """The code object that called; None if no Python code did, or it is not known."""
        cdef void *code = <void *>self.here().code
        return <object>code if code != NULL else None

    @property
    def file(self):
        """The file name that the code has, or None."""
        return self.known(self.here().file, 0)

    @property
    def function(self):
        """The qualified name of the code's function, or None."""
        return self.known(self.here().function, 1)

    @property
    def line(self):
        """The line of the call; 0 if unknown."""
        return self.here().line

    @property
    def address(self):
        """What a module must contain: the line; where no Python code called, the address of the native function."""
        return self.here().address

    @property
    def wall_ns(self):
        """Wall time of the call."""
        return self.here().wall_ns

    @property
    def cpu_ns(self):
        """CPU time of the calling thread in the same."""
        return self.here().cpu_ns

    @property
    def module(self):
        """The name of the module; None: not identified."""
        return self.known(self.here().module, 2)

    @module.setter
    def module(self, name):
        self.here().module = text_of(name, "module")
        self.module_text = name

    @property
    def base(self):
        """Where the module begins: a line of the code's file, or an address."""
        return self.here().base

    @base.setter
    def base(self, uint64_t base):
        self.here().base = base

    @property
    def size(self):
        """How many lines, or bytes, the module has."""
        return self.here().size

    @size.setter
    def size(self, uint64_t size):
        self.here().size = size

    @property
    def section(self):
        """The procedure in the module; None: the function."""
        return text_or_none(self.here().section)

    @section.setter
    def section(self, name):
        self.here().section = text_of(name, "section")
        self.section_text = name

    @property
    def statement(self):
        """The number of the statement in the module; 0: the line."""
        return self.here().statement

    @statement.setter
    def statement(self, uint32_t number):
        self.here().statement = number

    @property
    def transaction(self):
        """The transaction's name from collectors, which stays until it changes; None clears it."""
        return text_or_none(self.here().transaction)

    @transaction.setter
    def transaction(self, name):
        self.here().transaction = text_of(name, "transaction")
        self.transaction_text = name

    @property
    def identifier(self):
        """A text for the session data; empty at each call."""
        return self.here().identifier.decode("utf-8", "replace")

    @identifier.setter
    def identifier(self, text):
        text_of(text, "identifier")
        encoded = ("" if text is None else text).encode("utf-8", "replace")[:IDENTIFIER_BYTES]
        strncpy(self.here().identifier, encoded, IDENTIFIER_BYTES)

    @property
    def work(self):
        """The collector's own: any object, which stays from call to call; None at first."""
        self.here()
        return <object>self.collector.work if self.collector.work != NULL else None

    @work.setter
    def work(self, value):
        cdef void *before
        self.here()
        before = self.collector.work
        Py_INCREF(value)
        self.collector.work = <void *>value
        if before != NULL:
            Py_DECREF(<object>before)

    @property
    def scratch(self):
        """256 bytes of room that do not stay."""
        if self.room is None:
            self.room = bytearray(INTERPOSE_SCRATCH_BYTES)
        return self.room

    def force(self, str name):
        """Claim a pseudo-section, wherever the call was made from: one of the collector's `sections`."""
        self.module = name
        self.here().base = 0
        self.here().size = INTERPOSE_FORCED_SIZE


cdef inline object text_or_none(const char *text):
    return text.decode("utf-8", "replace") if text != NULL else None


cdef const char *text_of(object text, str name) except? NULL:
    if text is None:
        return NULL
    if type(text) is not str:
        raise TypeError(f"{name} is a str or None, not {type(text).__name__}")
    return PyUnicode_AsUTF8(text)
