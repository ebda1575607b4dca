#define _GNU_SOURCE
#include "kernel/note_cost.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "kernel/rings.h"

enum { RING_BYTES = 1 << 20 };

static uint64_t time_of_calls(void)
{
    enum { CALLS = 1000, ROUNDS = 5 };
    uint64_t least_ns = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
        for (int call = 0; call < CALLS; call++)
            syscall(SYS_getppid);
        uint64_t took_ns = (clock_ns(CLOCK_MONOTONIC) - begin_ns) / CALLS;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    return least_ns;
}

/* The shortest of the calls that were noted. */
static uint64_t least_noted_ns(struct rings *rings)
{
    struct note note;
    uint64_t begun_ns = 0, least_ns = UINT64_MAX;
    rings_look(rings, true);
    while (rings_next(rings, &note)) {
        bool is_it = note.number == SYS_getppid;
        if (note.kind == NOTE_ENTER)
            begun_ns = is_it ? note.time_ns : 0;
        else if (note.kind == NOTE_EXIT && is_it && begun_ns && note.time_ns - begun_ns < least_ns)
            least_ns = note.time_ns - begun_ns;
    }
    return least_ns == UINT64_MAX ? 0 : least_ns;
}

int note_cost(struct tracepoints tracepoints, bool has_stacks, uint64_t *call_ns, uint64_t *inside_ns)
{
    struct rings rings;
    uint64_t plain_ns = time_of_calls();
    int failed = rings_begin(&rings, tracepoints, RING_BYTES, false, has_stacks);
    if (failed)
        return failed;
    failed = rings_add(&rings, (pid_t)syscall(SYS_gettid), false);
    if (!failed) {
        uint64_t noted_ns = time_of_calls();
        *call_ns = noted_ns > plain_ns ? noted_ns - plain_ns : 0;
        uint64_t least_ns = least_noted_ns(&rings);
        *inside_ns = least_ns > plain_ns ? least_ns - plain_ns : 0;
        *inside_ns = *inside_ns < *call_ns ? *inside_ns : *call_ns;
    }
    rings_end(&rings);
    return failed;
}
