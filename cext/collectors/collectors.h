/* Data collectors: the user's code that says, at a call's end, what the program was doing. Which there are, and
   their cost. One that fails too often, or takes too long, is switched off; the reason is in the experiment. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectors/pseudo_sections.h"
#include "core/clock.h"
#include "core/levels.h"
#include "core/recorder.h"
#include "interpose_collector.h"

enum {
    RAISES_AT_MOST = 10,
    COLLECTOR_SAMPLED = 61, /* if all are in C, one call in this many is timed, and represents all */
    COLLECTOR_KNOWN = 509,  /* the same, once their mean was checked */
    COLLECTOR_LOOK = 256,   /* timed calls after which their mean is checked */
    MEMORY_LOOK = 1024,     /* one call in this many is checked for memory that it keeps */
    MEMORY_LOOKS = 32,      /* so many in a row that kept memory are too many */
    BLOCKS_AT_MOST = 1000000, /* of memory that one call may keep */
};

/* What the end of a call means, by its intrinsic: bits. */
enum { BOUNDARY_IS = 1, BOUNDARY_OTHER = 2, BOUNDARY_READS = 4 };

struct collector {
    void (*collect)(struct interpose_area *area);
    PyObject *function; /* in the place of `collect`, where it is in Python */
    void *work;         /* of one in Python an object, or NULL */
    uint32_t place, name, per;
    uint32_t raised, calls, timed, kept_in_a_row;
    uint64_t cpu_ns; /* of the timed calls since the last look */
    uint64_t identifier; /* the last that was noted */
};

struct collectors {
    struct collector all[COLLECTORS_AT_MOST];
    uint32_t count;
    uint32_t on, per[INTERPOSE_PER_SITE + 1], in_python; /* bits */
    uint32_t running, named; /* intrinsics: one is being called; a transaction got a name */
    uint32_t turn, sampled; /* calls since one was timed, and after how many the next is */
    uint8_t boundaries[COUNTED_NUMBERS]; /* by the number of an intrinsic */
    /* The Python side: a call, with the number of memory blocks it kept if requested; the object made for it; and
       notes. */
    int (*call)(struct collector *collector, struct interpose_area *area, PyObject **made, int64_t *kept_blocks);
    void (*release)(PyObject *made);
    void (*note)(const struct collector *collector, const char *why, int is_off);
    void (*identify)(const struct collector *collector, const char *text);
};

extern struct collectors collectors;

static inline uint32_t boundary_of(uint32_t intrinsic)
{
    return intrinsic < COUNTED_NUMBERS ? collectors.boundaries[intrinsic] : 0;
}

/* Note what is wrong with a collector. An exception of the program's call stays. */
void note_wrong(const struct collector *collector, const char *why, bool is_off);

void collector_switch_off(struct collector *collector, const char *why);

void look_at_cost(struct collector *collector, uint64_t cpu_ns);

void look_at_memory(struct collector *collector, int64_t kept_blocks);

/* Is neither the program's time nor that of the call around. */
void charge_collectors(struct thread *thread, uint32_t index, struct reading begin, struct reading end, uint64_t times);
