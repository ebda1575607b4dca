"""The recorder and its records in C (cext/core/recorder.h, cext/core/fields.h)."""

from libc.stdint cimport uint32_t, uint64_t

from interpose.timing.clock cimport c_clock, clock_kind, reading

cdef extern from "core/fields.h":
    struct c_field "field":
        const char *name
        const char *type
        unsigned offset
        const char *title
    struct c_data_type "data_type":
        const char *name
        const c_field *fields
        unsigned record_bytes
        unsigned head_bytes
        unsigned block_bytes
    const c_data_type data_types[]
    const c_field block_head_fields[]
    const c_field compressed_fields[]
    const c_field file_head_fields[]
    const c_field control_fields[]
    const c_field open_call_fields[]
    enum:
        FORMAT_VERSION
    struct c_thread_fields "thread_fields":
        uint64_t made
    struct c_thread_record "thread_record":
        c_thread_fields fields
    struct c_block_head "block_head":
        uint32_t used
    struct c_event "event":
        uint64_t wall_ns

cdef extern from "core/monitor.h":
    void monitor_prepare(const char *, const char *)

cdef extern from "core/recorder.h" nogil:
    enum:
        ROWS_each
        ROWS_cursor
        ROWS_auto
    struct c_block "block":
        c_block_head head
        c_event *events
    struct c_thread "thread":
        uint32_t quiet
        c_thread_record *record
        c_block *block
        c_clock clock
    struct c_recorder "recorder":
        uint32_t on
        uint32_t serial
        uint64_t wait_above_ns
        uint64_t interval_ns
        uint32_t rows
        uint32_t dialogue
    c_recorder recorder_state "recorder"
    struct recorder_settings:
        const char *directory
        const char *founder
        const char *lineage
        clock_kind clock
        uint32_t stack_kept
        uint64_t stack_above_ns
        uint64_t wait_above_ns
        uint64_t sample_every_ns
        uint64_t pool_bytes
        uint64_t limit_bytes
        uint32_t wait_when_full
        uint64_t ring_bytes
        uint64_t trigger_above_ns
        const char *trigger_errors
        uint32_t trigger_exit
        uint32_t paused
        uint64_t begun_wall_ns
        uint64_t begun_cpu_ns
        uint32_t objects
        uint32_t group_reads
        uint32_t rows
        uint64_t dialogue_bytes
    ctypedef int level "enum level"
    struct governor_settings:
        uint64_t budget_ppm
        uint64_t timed_ns
        uint64_t counted_ns
        bint (*lower)(uint32_t, level) noexcept
    void recorder_govern(const governor_settings *)
    struct span:
        uint64_t wall_ns
    int recorder_begin(const recorder_settings *)
    int recorder_describe(const char *, size_t)
    int recorder_map(const char *, size_t)
    void recorder_end(int)
    const char *recorder_directory()
    int recorder_filter(const char *, size_t)
    void recorder_detach()
    void recorder_hush()
    void recorder_say(const char *, const char *)
    void recorder_tell_fate()
    void recorder_turn(bint)
    void recorder_sample(const char *)
    void recorder_forks()
    void recorder_has_forked()
    void recorder_forked()
    c_thread *recording()
    uint32_t string_intern(const char *, size_t)
    struct c_thread_mark "thread_mark":
        uint32_t used
    c_thread_mark thread_mark(const c_thread *)
    void thread_rewind(c_thread *, c_thread_mark)
    reading own_begin(c_thread *)
    void own_end(c_thread *, reading)
