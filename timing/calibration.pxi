# What calls and waits cost here, and whether shims work in place at all.

cdef enum:
    # Some clocks ask the kernel for each reading, so not many are made at a start.
    TIMED = 24
    TIMED_IN_KERNEL = 6
    ROUNDS = 6

cdef uint64_t time_a_free_lock(PyThread_type_lock lock) noexcept:
    cdef uint64_t begin = clock_ns(CLOCK_MONOTONIC)
    PyThread_acquire_lock(lock, 1)
    PyThread_release_lock(lock)
    return clock_ns(CLOCK_MONOTONIC) - begin


def calibrate_waits():
    """From which time on a call for a lock has waited, in nanoseconds: the longest of a hundred calls for a free one,
    or six times their mean if that is more, rounded up to a microsecond (as gprofng does)."""
    cdef PyThread_type_lock lock = PyThread_allocate_lock()
    cdef int index
    if lock == NULL:
        return 1000
    for index in range(3):
        time_a_free_lock(lock)
    times = [time_a_free_lock(lock) for index in range(100)]
    PyThread_free_lock(lock)
    return (max(max(times), 6 * sum(times) // 100) + 999) // 1000 * 1000


cdef uint64_t least_wall(c_block *block, uint32_t first):
    """The shortest of the block's events from `first` on: what two readings see of themselves."""
    cdef uint64_t least = 1 << 60
    cdef uint32_t index
    for index in range(first, block.head.used):
        least = min(least, block.events[index].wall_ns)
    return least


cdef uint64_t time_calls(c_thread *thread, pair_function stub, PyObject *about, int count):
    """Mean time of `count` calls of nothing through a stub, with `about` as their argument, in nanoseconds."""
    cdef reading begin = clock_read(&thread.clock), end
    cdef int index
    for index in range(count):
        stub(NULL, about)
    end = clock_read(&thread.clock)
    return (end.wall_ns - begin.wall_ns) // count


cdef uint64_t least_time_of_calls(c_thread *thread, c_thread_mark mark, pair_function stub, PyObject *about, int count):
    """The least of several such means. Each round's events go where those of the round before were: a program that has run for
    a while gets its memory back in the same way."""
    least_ns = 1 << 60
    for _ in range(ROUNDS):
        thread_rewind(thread, mark)
        least_ns = min(least_ns, time_calls(thread, stub, about, count))
    return least_ns


cdef uint64_t time_readings(c_thread *thread):
    """Mean time of a clock reading, in nanoseconds."""
    cdef reading begin = clock_read(&thread.clock), end
    cdef int index
    for index in range(TIMED):
        clock_read(&thread.clock)
    end = clock_read(&thread.clock)
    return (end.wall_ns - begin.wall_ns) // TIMED


cdef PyObject *look_at_root(PyObject *module, PyObject *argument) noexcept:
    access(b"/", 0)
    return argument


cdef uint64_t cost_of_a_path(c_thread *thread, c_thread_mark mark, slot *plain, pair_function stub):
    """The cost of a recorded call that is about a path and asks the kernel: less is in the caches after that."""
    cdef str path = "/calibrated/path/to/a.file"
    arguments_cost(0)
    plain.real = <void *>look_at_root
    plain.detail = DETAIL_path
    plain.shape = SHAPE_ONE
    stub(NULL, <PyObject *>path)
    recorded_ns = least_time_of_calls(thread, mark, stub, <PyObject *>path, TIMED_IN_KERNEL)
    plain_ns = least_time_of_calls(thread, mark, look_at_root, <PyObject *>path, TIMED_IN_KERNEL)
    plain.detail = plain.shape = 0
    plain.real = <void *>do_nothing
    return max(recorded_ns, plain_ns) - plain_ns


def calibrate():
    """The cost of a recorded call that does nothing, the part of it between its own two clock readings, and the cost of
    one reading: (call, inside, reading) in nanoseconds, each the least of several measurements. What it costs more if it
    is about a text is charged whenever one is kept."""
    cdef c_thread *thread = recording()
    cdef slot *slot = new_slot(SIGNATURE_pair, bodies[SIGNATURE_pair], <void *>do_nothing)
    cdef pair_function stub = <pair_function>slot_stub(SIGNATURE_pair, slot)
    cdef c_thread_mark mark = thread_mark(thread)
    slot.real = <void *>do_nothing
    slot_is_fit(slot)
    stub(NULL, <PyObject *>None)
    call_ns = least_time_of_calls(thread, mark, stub, <PyObject *>None, TIMED)
    read_ns = min([time_readings(thread) for _ in range(ROUNDS)])
    inside_ns = min(least_wall(thread.block, mark.used), call_ns) if thread.block != NULL else read_ns
    path_ns = min(cost_of_a_path(thread, mark, slot, stub), 3 * call_ns)
    arguments_cost(max(path_ns, call_ns) - call_ns)
    slot.taken = 0
    thread_rewind(thread, mark)
    return call_ns, inside_ns, read_ns


def calibrate_statements():
    """The cost of recording a line event, in nanoseconds: the least of several measurements."""
    cdef c_thread *thread = recording()
    cdef slot *slot = new_slot(SIGNATURE_pair, bodies[SIGNATURE_pair], <void *>do_nothing)
    cdef c_thread_mark mark = thread_mark(thread)
    least_ns = 1 << 60
    slot.real = <void *>do_nothing
    slot_is_fit(slot)
    tell_lines_as(slot)
    for _ in range(8):
        least_ns = min(least_ns, time_told_lines(thread, 64))
        thread_rewind(thread, mark)
    tell_lines_as(NULL)
    slot.taken = 0
    return least_ns


cdef uint32_t _tested = 0


cdef PyObject *count_call(slot *self, PyObject *module, PyObject *argument) noexcept:
    global _tested
    _tested += 1
    return (<pair_function>self.real)(module, argument)


def works_in_place(modules):
    """Whether a stub catches the calls of the function that it replaces, and of no other, and only while it is
    installed. Tried with a function that does nothing; returns why not, or an empty text."""
    global _tested
    cdef Installed installed
    _tested = 0
    lock_held = modules["_imp"].lock_held
    try:
        installed = put_method(lock_held, <void *>count_call, SIGNATURE_pair)
    except NotInterposed as reason:
        return str(reason)
    slot_is_fit(installed.slot)
    seen = [lock_held() in (True, False), modules["_imp"].lock_held() in (True, False), _tested == 2]
    restored = installed.restore()
    lock_held()
    return "" if all(seen) and restored and _tested == 2 else "a function that was interposed was not called as before"
