"""The recorder and its records in C (cext/core: recorder.h, settings.h, fields.h)."""

from libc.stdint cimport uint32_t, uint64_t

from interpose.timing.clock cimport c_clock, clock_kind, reading

cdef extern from "core/fields.h":
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

cdef extern from "core/xml_text.h" nogil:
    struct xml_text:
        char *text
        size_t bytes
        bint failed
    void xml_put(xml_text *, const char *)
    void xml_put_number(xml_text *, const char *, unsigned long)
    void xml_put_escaped(xml_text *, const char *, size_t)
    void xml_free(xml_text *)

cdef extern from "core/layout_text.h":
    void layout_write(xml_text *)

cdef extern from "core/monitor.h":
    void monitor_prepare(const char *, const char *)
    void monitor_begin_sampling()

cdef extern from "core/settings.h" nogil:
    const uint64_t NEVER "UINT64_MAX"
    enum:
        ROWS_each
    const char *const rows_words[]
    struct recorder_settings:
        const char *directory
    enum:
        SETTING_text
        SETTING_number
        SETTING_flag
        SETTING_clock
        SETTING_rows
    struct setting_field:
        const char *name
        uint32_t type
        uint32_t offset
    const setting_field recorder_settings_fields[]

ctypedef void (*line_teller)(void *) noexcept

cdef extern from "core/recorder.h" nogil:
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
        uint64_t interval_ns
        uint32_t rows
        uint32_t dialogue
        line_teller tell_line
    c_recorder recorder_state "recorder"
    ctypedef int level "enum level"
    struct governor_settings:
        uint64_t budget_ppm
        uint64_t timed_ns
        uint64_t counted_ns
        bint (*lower)(uint32_t, level) noexcept
    void recorder_govern(const governor_settings *)
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
    bint recorder_is_on()
    uint32_t string_intern(const char *, size_t)
    uint32_t detail_intern(const char *, size_t)
    struct c_thread_mark "thread_mark":
        uint32_t used
    c_thread_mark thread_mark(const c_thread *)
    void thread_rewind(c_thread *, c_thread_mark)
    reading own_begin(c_thread *)
    void own_end(c_thread *, reading)
    void own_end_apart(c_thread *, reading)
