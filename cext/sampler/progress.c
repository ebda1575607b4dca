#include "sampler/progress.h"

#include <string.h>

#include "core/ticks.h"
#include "sampler/remote.h"

enum {
    ROUND_AT_MOST_NS = 500000, /* the sampler looks no longer than that at the threads of a round */
    FRAME_BYTES = 256, /* the instruction, and the first variables and values */
    STACK_BYTES = 8192,
};

struct watched { /* without a gap */
    char frame[FRAME_BYTES], stack[STACK_BYTES];
};

/* How many bytes were read: all, the frame alone where the stack is not as large, or none if not even that is there any more. */
static size_t read_watched(const struct sampled_process *process, const struct last_frames *last, struct watched *into)
{
    const struct remote_piece pieces[] = {
        {last->address[0], into->frame, FRAME_BYTES},
        {last->c_stack - STACK_BYTES, into->stack, STACK_BYTES},
    };
    unsigned read = remote_read_pieces(process->reached, pieces, last->c_stack > STACK_BYTES ? 2 : 1);
    return read == 2 ? sizeof *into : read ? FRAME_BYTES : 0;
}

bool progress_is_seen(const struct sampled_process *process, const struct sampled_thread *thread, uint64_t for_ns)
{
    static __thread struct watched before, now;
    uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + for_ns;
    if (!thread->last_frames.count || until_ns > process->round_ns + ROUND_AT_MOST_NS)
        return false;
    size_t bytes = read_watched(process, &thread->last_frames, &before);
    do
        if (!bytes || read_watched(process, &thread->last_frames, &now) != bytes || memcmp(&before, &now, bytes))
            return true;
    while (clock_ns(CLOCK_MONOTONIC) < until_ns);
    return false;
}
