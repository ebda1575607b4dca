/* The settings of a recording. This list is the only description: the structure is made from it, and so is the
   table with which `begin` in timing/shims.pyx fills it from an object with attributes of these names. A new field is
   one line here, and its use. */
#pragma once

#include <stdint.h>

#include "core/clock.h"
#include "core/visible.h"

/* How fetches of rows are recorded: each by itself, or those of a cursor combined, always or above a rate. */
#define ROWS(X) X(each) X(cursor) X(auto)
#define NUMBER_OF_ROWS(name) ROWS_##name,
enum rows { ROWS(NUMBER_OF_ROWS) };

/* The types of the fields. A number without a limit, or a time that never comes, is UINT64_MAX. */
typedef const char *setting_text;
typedef uint64_t setting_number;
typedef uint32_t setting_flag;
typedef enum clock_kind setting_clock;
typedef enum rows setting_rows;

#define RECORDER_SETTINGS(X) \
    X(text,   directory,        "where it records; exists") \
    X(text,   founder,          "the founder's directory, where forked children get theirs") \
    X(text,   lineage,          "of this process") \
    X(clock,  clock,            "how CPU time is read") \
    X(flag,   stack_kept,       "stacks are recorded") \
    X(number, stack_above_ns,   "a call so long keeps its whole stack") \
    X(flag,   native_functions, "a native call keeps the functions of C that led to it") \
    X(number, wait_above_ns,    "a wait so long is recorded; 0: free locks as well") \
    X(number, pool_bytes,       "events may take so much of the disk at a time, where this process is the founder; 0: any") \
    X(number, limit_bytes,      "and so much in all") \
    X(number, reserve_bytes,    "so much of the disk is left free; UINT64_MAX: as much as its size demands") \
    X(flag,   wait_when_full,   "the program waits for room, and events are not dropped") \
    X(number, ring_bytes,       "full blocks of each process go round in so much of the disk; 0: none is overwritten") \
    X(number, trigger_above_ns, "a call so long fires the trigger") \
    X(text,   trigger_errors,   "the names of errors that do, with spaces between them; * for all") \
    X(flag,   trigger_exit,     "an exit status that is not 0 does") \
    X(flag,   paused,           "nothing is recorded until somebody outside says so, where this process is the founder") \
    X(number, sample_every_ns,  "what the process uses is noted so often; never: only at the beginning and the end") \
    X(number, begun_wall_ns,    "since when the time is ours, by the monotonic clock") \
    X(number, begun_cpu_ns,     "and by the calling thread's CPU clock") \
    X(flag,   objects,          "the files that are mapped are noted") \
    X(flag,   group_reads,      "files are for the group, too") \
    X(rows,   rows,             "how fetches of rows are recorded") \
    X(number, dialogue_bytes,   "so much of the dialogue is kept; 0: none")

#define DECLARE_SETTING(type, name, meaning) setting_##type name;
struct recorder_settings {
    RECORDER_SETTINGS(DECLARE_SETTING)
};
#undef DECLARE_SETTING

enum setting_type { SETTING_text, SETTING_number, SETTING_flag, SETTING_clock, SETTING_rows };
struct setting_field {
    const char *name; /* NULL after the last */
    uint32_t type, offset;
};
VISIBLE extern const struct setting_field recorder_settings_fields[];
VISIBLE extern const char *const rows_words[];
