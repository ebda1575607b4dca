# Which intrinsics are timed, which only counted, which neither; what costs too much is lowered while the program runs.

cdef list _timed_by_wrapt = []  # calls through wrapt, whose slots are in no pool


cdef bint lower_number(uint32_t number, level to) noexcept:
    cdef Timed timed
    cdef bint found = slots_lower(number, to) | native_lower(number, to)
    for timed in _timed_by_wrapt:
        found |= slot_lower(&timed.slot, number, to)
    return found


def lower(uint32_t number, str to):
    """Have the calls of the intrinsic `number` no longer timed (`count`) or not even counted (`off`), from now on and for
    good. Returns whether there are such calls; those by which descendants are followed are always timed."""
    return lower_number(number, <level>number_of(level_words, to))


def govern(uint64_t budget_ppm, uint64_t timed_ns):
    """Lower, from now on, what costs most as long as recording takes more than `budget_ppm` millionths of the CPU time;
    a timed call costs `timed_ns`."""
    cdef governor_settings settings
    settings.budget_ppm = budget_ppm
    settings.timed_ns = timed_ns
    settings.counted_ns = calibrate_counted()
    settings.lower = lower_number
    recorder_govern(&settings)


cdef uint64_t calibrate_counted() except? 0:
    """What a call costs that is not timed, in nanoseconds: the least of several measurements."""
    cdef c_thread *thread = recording()
    cdef slot *slot = new_slot(SIGNATURE_pair, bodies[SIGNATURE_pair], <void *>do_nothing)
    cdef pair_function stub = <pair_function>slot_stub(SIGNATURE_pair, slot)
    slot.real = <void *>do_nothing
    slot.levels[0] = LEVEL_off
    slot.lowered = 1
    slot_is_fit(slot)
    stub(NULL, <PyObject *>None)
    counted_ns = min([time_calls(thread, stub, <PyObject *>None, TIMED) for _ in range(8)]) if thread != NULL else 1
    slot.taken = 0
    return max(counted_ns, 1)
