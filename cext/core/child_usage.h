/* What the kernel has counted of child processes. It reports the use of a single child with its end, to a caller
   that asks in the same call; otherwise only the growth of the sum over all children is known. */
#pragma once

#include <stdint.h>
#include <sys/resource.h>

enum {
    USED_CPU_NS,
    USED_SYSTEM_NS,
    USED_MINOR_FAULTS,
    USED_MAJOR_FAULTS,
    USED_IN_BLOCKS,
    USED_OUT_BLOCKS,
    USED_VOLUNTARY_SWITCHES,
    USED_INVOLUNTARY_SWITCHES,
    USAGE_FIGURES
};

/* Of one child and those it waited for itself, or of several. */
struct child_usage {
    uint64_t figures[USAGE_FIGURES];
    uint32_t memory_kib; /* the largest of any of them */
};

/* What a thread knows of children as it waits for one. */
struct child_waits {
    uint32_t begun;            /* the two that follow were noted when the call began */
    uint32_t pid;              /* the child that it has reaped in this call and that `reaped` is of, or 0 */
    struct child_usage all;    /* of all children that the process had waited for */
    struct child_usage noted;  /* of those with a recorded end */
    struct child_usage reaped;
};

struct child_usage usage_of(const struct rusage *used);

/* Of all children that the process has waited for. */
struct child_usage usage_of_all(void);

/* The growth since the call began, less what was `noted` for others meanwhile. The memory is known if no earlier
   child had as much; else it is 0. */
struct child_usage usage_since(const struct child_waits *waits, const struct child_usage *noted);

/* Add one child's to a sum. */
void usage_add(struct child_usage *sum, const struct child_usage *used);
