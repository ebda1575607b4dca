#include "sampler/progress.h"

#include <string.h>
#include <time.h>

#include "sampler/remote.h"

enum {
    LOOKED_AT_NS = 40000, /* Python code mostly changes its frame within a microsecond */
    ROUND_AT_MOST_NS = 500000, /* the sampler looks no longer than that at the threads of a round */
    FRAME_BYTES = 256, /* the instruction, and the first variables and values */
    STACK_BYTES = 8192,
};

struct watched {
    char frame[FRAME_BYTES], stack[STACK_BYTES];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* False if not even the frame is there any more. The stack may not be as large. */
static bool read_watched(const struct sampled_process *process, const struct last_frames *last, struct watched *into)
{
    const struct remote_piece pieces[] = {
        {last->address[0], into->frame, FRAME_BYTES},
        {last->c_stack - STACK_BYTES, into->stack, STACK_BYTES},
    };
    return remote_read_pieces(process->reached, pieces, last->c_stack > STACK_BYTES ? 2 : 1) > 0;
}

bool progress_is_seen(const struct sampled_process *process, const struct sampled_thread *thread)
{
    static __thread struct watched before, now;
    uint64_t until_ns = now_ns() + LOOKED_AT_NS;
    if (!thread->last_frames.count || until_ns > process->round_ns + ROUND_AT_MOST_NS)
        return false;
    if (!read_watched(process, &thread->last_frames, &before))
        return true;
    do
        if (!read_watched(process, &thread->last_frames, &now) || memcmp(&before, &now, sizeof now))
            return true;
    while (now_ns() < until_ns);
    return false;
}
