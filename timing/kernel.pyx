"""The kernel's view of processes (cext/kernel), for the command that records it. Traced programs do not import this."""

import os

from libc.errno cimport errno
from libc.stdint cimport uint32_t, uint64_t

cdef extern from "stdbool.h":
    ctypedef bint c_bool "bool"

cdef extern from "kernel/system_calls.h" nogil:
    const unsigned BY_DESCRIPTOR, KINDS_OF_DESCRIPTORS
    const unsigned kinds_of_descriptors[]
    struct system_call:
        const char *name
        unsigned kind
    const unsigned system_calls_listed
    const system_call *system_call_listed(unsigned)

cdef extern from "kernel/tracepoints.h" nogil:
    struct tracepoints:
        pass
    int tracepoints_find(tracepoints *)

cdef extern from "kernel/note_cost.h" nogil:
    struct note_costs:
        uint64_t call_ns, inside_ns
    int note_cost(tracepoints, c_bool, note_costs *)

cdef extern from "kernel/kernel_view.h" nogil:
    const unsigned ERRORS
    struct kernel_texts:
        char **text
        size_t count
    struct kernel_files:
        int failed
    struct site:
        uint32_t file, function, own
    struct stack:
        uint32_t site, outer, cut
    struct kernel_stacks:
        site *site
        stack *stack
        uint32_t sites, stacks
    enum wanted:
        NOTHING, PLACE, PROGRAM, END
    struct watched_process:
        uint32_t pid, parent, stack
        c_bool has_ended, has_lost
        int status
        uint64_t begun_ns, end_ns, cpu_ns, delay_ns, lost
        char *name
        char *path
        kernel_files files
        kernel_texts texts
        kernel_stacks stacks
    struct kernel_view:
        pass
    kernel_view *kernel_view_begin(tracepoints, c_bool, c_bool, uint32_t, note_costs)
    int kernel_view_watch(kernel_view *, int, watched_process **)
    int kernel_view_watch_child(kernel_view *)
    void kernel_view_look(kernel_view *, c_bool)
    wanted kernel_view_next(kernel_view *, watched_process **)
    int kernel_view_place(watched_process *, const char *)
    void kernel_view_leave(kernel_view *, watched_process *)
    void kernel_view_forget(kernel_view *, watched_process *)
    void kernel_view_end(kernel_view *)
    uint32_t texts_once(kernel_texts *, const char *)
    uint32_t kernel_site(kernel_stacks *, uint32_t, uint32_t, c_bool)
    uint32_t kernel_stack(kernel_stacks *, uint32_t, uint32_t, c_bool)

FIRST_TEXT = ERRORS + 1  # lower numbers are those of errors
WANTED = {PLACE: "place", PROGRAM: "program", END: "end"}


cdef tracepoints found_tracepoints() except *:
    cdef tracepoints found
    cdef int failed = tracepoints_find(&found)
    if failed:
        raise OSError(failed, os.strerror(failed))
    return found


def measured_costs(c_bool has_stacks):
    """What recording costs a program, in nanoseconds: the fields of `note_costs`. Raises OSError."""
    cdef note_costs costs
    cdef int failed = note_cost(found_tracepoints(), has_stacks, &costs)
    if failed:
        raise OSError(failed, os.strerror(failed))
    return costs


def system_calls(tuple kinds):
    """The system calls with the kinds that theirs may be, in the order of their numbers in the map, from 1; `kinds` are the names
    of all kinds in their order."""
    cdef unsigned place
    cdef const system_call *call
    of_descriptors = [kinds[kinds_of_descriptors[place]] for place in range(KINDS_OF_DESCRIPTORS)]
    found = []
    for place in range(system_calls_listed):
        call = system_call_listed(place)
        found.append((call.name.decode(), of_descriptors if call.kind == BY_DESCRIPTOR else [kinds[call.kind]]))
    return found


cdef class Watched:
    """A process that is watched, until `View.forget`."""

    cdef watched_process *process
    cdef readonly int pid

    cdef watched_process *checked(self) except NULL:
        if self.process == NULL:
            raise ValueError("the process is forgotten")
        return self.process

    @property
    def parent(self):
        """The number of the process that started it; 0 if that was not seen."""
        return self.checked().parent

    @property
    def program(self):
        """The path of the program that it became, or at least the beginning of its name; empty if it became none."""
        cdef watched_process *process = self.checked()
        return os.fsdecode(<bytes>(process.name if process.path == NULL else process.path))

    @property
    def name(self):
        """The beginning of the name of what it became, which may be a script; empty if it became nothing."""
        return os.fsdecode(<bytes>self.checked().name)

    @property
    def has_ended(self):
        """Whether its end was seen."""
        return bool(self.checked().has_ended)

    @property
    def status(self):
        """The status with which it ended itself; None if it did not say."""
        return self.checked().status if self.checked().status >= 0 else None

    @property
    def times(self):
        """When it began to be watched, when it was seen last, and the CPU time of its threads and their wait for a processor in
        between: nanoseconds, the first two on the monotonic clock."""
        cdef watched_process *process = self.checked()
        return process.begun_ns, process.end_ns, process.cpu_ns, process.delay_ns

    @property
    def lost(self):
        """How many notes the kernel lost, of anybody, while it ran; 0 if that is not known, None if it lost none."""
        return self.checked().lost if self.checked().has_lost else None

    @property
    def failed(self):
        """The error number if its files could not be written, or 0."""
        return self.checked().files.failed

    @property
    def texts(self):
        """What its records refer to, from number `FIRST_TEXT` on, as bytes."""
        cdef kernel_texts *texts = &self.checked().texts
        cdef size_t place
        return [texts.text[place] for place in range(texts.count)]

    @property
    def sizes(self):
        """How many texts, sites and stacks there are."""
        cdef watched_process *process = self.checked()
        return process.texts.count, process.stacks.sites, process.stacks.stacks

    @property
    def sites(self):
        """Where its calls come from, from number 1 on: file and function, numbers of texts, and whether they are the program's."""
        cdef kernel_stacks *stacks = &self.checked().stacks
        return [(stacks.site[place].file, stacks.site[place].function, stacks.site[place].own) for place in range(stacks.sites)]

    @property
    def stacks(self):
        """Its stacks, from number 1 on: the site, the stack that it was called from or 0, and whether callers were left out."""
        cdef kernel_stacks *stacks = &self.checked().stacks
        return [(stacks.stack[place].site, stacks.stack[place].outer, stacks.stack[place].cut) for place in range(stacks.stacks)]

    def place(self, directory):
        """Write events and threads into this directory; raises OSError."""
        cdef bytes path = os.fsencode(directory)
        cdef int failed = kernel_view_place(self.checked(), path)
        if failed:
            raise OSError(failed, os.strerror(failed), directory)

    def begin_program(self, path):
        """Calls of which no more is known come from this program from now on."""
        cdef watched_process *process = self.checked()
        cdef bytes file = os.fsencode(path), name = os.fsencode(os.path.basename(path))
        cdef uint32_t site = kernel_site(&process.stacks, texts_once(&process.texts, file), texts_once(&process.texts, name), True)
        process.stack = kernel_stack(&process.stacks, site, 0, False)


cdef class View:
    """The kernel's view of processes. `follows`: also watch their child processes. `has_stacks`: record functions. `kinds`: the
    kinds to record, a bit for each in their order. `costs`: as `measured_costs` returns them. Raises OSError. For one thread."""

    cdef kernel_view *view
    cdef dict known

    def __cinit__(self, c_bool follows, c_bool has_stacks, uint32_t kinds, note_costs costs):
        self.known = {}
        self.view = kernel_view_begin(found_tracepoints(), follows, has_stacks, kinds, costs)
        if self.view == NULL:
            raise OSError(errno, os.strerror(errno))

    def __dealloc__(self):
        self.close()

    cdef kernel_view *checked(self) except NULL:
        if self.view == NULL:
            raise ValueError("the view is closed")
        return self.view

    cdef Watched watched(self, watched_process *process):
        cdef Watched found = self.known.get(<uint64_t>process)
        if found is None:
            found = self.known[<uint64_t>process] = Watched()
            found.process = process
            found.pid = process.pid
        return found

    def watch(self, int pid):
        """Watch this process from now on; raises OSError."""
        cdef watched_process *process = NULL
        cdef int failed = kernel_view_watch(self.checked(), pid, &process)
        if failed:
            raise OSError(failed, os.strerror(failed))
        return self.watched(process)

    def watch_child(self):
        """Watch the program that the next child of the calling thread becomes; raises OSError."""
        cdef int failed = kernel_view_watch_child(self.checked())
        if failed:
            raise OSError(failed, os.strerror(failed))

    def look(self, c_bool is_last=False):
        """Look for what has happened since; after a last look there is nothing to wait for."""
        cdef kernel_view *view = self.checked()
        with nogil:
            kernel_view_look(view, is_last)

    def next(self):
        """Take what the look found, up to where something has to be done: ("place" | "program" | "end", process); None when all
        was taken."""
        cdef kernel_view *view = self.checked()
        cdef watched_process *process = NULL
        cdef wanted what
        with nogil:
            what = kernel_view_next(view, &process)
        return (WANTED[what], self.watched(process)) if what != NOTHING else None

    def note_gone(self, Watched watched):
        """A process has ended, and no note told of it."""
        watched.checked().has_ended = True

    def leave(self, Watched watched):
        """Write all of a process, which has ended or is watched no longer."""
        kernel_view_leave(self.checked(), watched.checked())

    def forget(self, Watched watched):
        """Forget it."""
        cdef watched_process *process = watched.checked()
        self.known.pop(<uint64_t>process, None)
        watched.process = NULL
        kernel_view_forget(self.checked(), process)

    def close(self):
        """Watch nobody."""
        if self.view == NULL:
            return
        for each in self.known.values():
            (<Watched>each).process = NULL
        kernel_view_end(self.view)
        self.view = NULL
