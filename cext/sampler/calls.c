#define _GNU_SOURCE
#include "sampler/calls.h"

#include <unistd.h>

#include "core/fields.h"

/* Records follow each other after a head of the same length. */
static bool read_record(const struct sampled_process *process, uint32_t number, struct thread_record *record)
{
    off_t at = (off_t)number * THREAD_BYTES;
    return pread(process->threads_file, record, sizeof *record, at) == (ssize_t)sizeof *record;
}

static bool is_of(const struct thread_record *record, const struct sampled_thread *thread)
{
    return record->fields.start_ns && record->fields.tid == thread->tid && !record->fields.end_ns;
}

/* Newer threads have higher numbers. A thread that has recorded nothing yet is looked for again each time. */
static bool find_record(const struct sampled_process *process, struct sampled_thread *thread,
                        struct thread_record *record)
{
    if (thread->record && read_record(process, thread->record, record) && is_of(record, thread))
        return true;
    thread->record = 0;
    for (uint32_t number = 1; read_record(process, number, record) && record->fields.start_ns; number++)
        if (is_of(record, thread)) {
            thread->record = number;
            return true;
        }
    return false;
}

bool call_is_recorded(const struct sampled_process *process, const struct sampled_thread *thread)
{
    struct thread_record record;
    return thread->record && read_record(process, thread->record, &record) && is_of(&record, thread);
}

/* The wait for the interpreter lock, if it is in progress still. */
static uint32_t lock_wait_of(const struct thread_record *record, uint32_t depth)
{
    while (depth > 0 && record->open[depth - 1].call != record->fields.lock_wait)
        depth--;
    return depth > 0 ? record->fields.lock_wait : 0;
}

struct call_in_progress call_of(struct sampled_process *process, struct sampled_thread *thread)
{
    struct thread_record record;
    struct call_in_progress found = {0};
    if (!find_record(process, thread, &record))
        return found;
    found.greenlet = record.fields.greenlet;
    uint32_t depth = record.fields.depth < OPEN_CALLS ? record.fields.depth : OPEN_CALLS;
    found.lock_wait = lock_wait_of(&record, depth);
    found.begins = depth < OPEN_CALLS && record.open[depth].call; /* in the table, and not counted yet (core/spans.h) */
    for (; depth > 0; depth--)
        if (record.open[depth - 1].call) { /* with greenlets, one that has ended may be among others */
            found.call = record.open[depth - 1].call;
            found.intrinsic = record.open[depth - 1].intrinsic;
            break;
        }
    return found;
}
