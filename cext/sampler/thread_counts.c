#include "sampler/thread_counts.h"

#include <errno.h>

static void write_one(struct sampled_process *process, const struct sampled_thread *thread, struct sampled_count count)
{
    count.tid = thread->tid;
    count.thread = thread->record;
    tables_count(&process->tables, &count);
}

/* What cannot be counted is written once for each process. */
static void write_failed(struct sampled_process *process, const struct sampled_thread *thread)
{
    for (unsigned place = 0; place < process->counters->count; place++) {
        int error = thread->counters.errors[place];
        if (!error || error == ESRCH || process->not_counted & 1u << place)
            continue;
        process->not_counted |= 1u << place;
        write_one(process, thread, (struct sampled_count){.counted = (uint64_t)error, .kind = COUNT_FAILED, .counter = place});
    }
}

static void write_all(struct sampled_process *process, const struct sampled_thread *thread, uint32_t sample,
                      const uint64_t counts[COUNTERS_AT_MOST])
{
    for (unsigned place = 0; place < process->counters->count; place++) {
        enum count_kind kind = thread->counters.in_user_mode_only[place] ? COUNT_IN_USER_MODE : COUNT_WHOLE;
        if (counts[place])
            write_one(process, thread,
                      (struct sampled_count){.counted = counts[place], .kind = kind, .counter = place, .sample = sample});
    }
    write_failed(process, thread);
}

void thread_counts_begin(struct sampled_process *process, struct sampled_thread *thread)
{
    counters_open(&thread->counters, process->counters, process->pid, thread->tid, process->pauses);
    write_failed(process, thread);
}

void thread_counts_add(const struct sampled_process *process, struct sampled_thread *thread, uint64_t counts[COUNTERS_AT_MOST])
{
    counters_add(&thread->counters, process->counters, process->pauses, counts);
}

void thread_counts_write(struct sampled_process *process, const struct sampled_thread *thread, const struct taken *taken)
{
    write_all(process, thread, tables_sample(&process->tables, &taken->sample), taken->counts);
}

void thread_counts_end(struct sampled_process *process, struct sampled_thread *thread)
{
    uint64_t counts[COUNTERS_AT_MOST] = {0};
    thread_counts_add(process, thread, counts);
    write_all(process, thread, 0, counts);
    counters_close(&thread->counters);
}
