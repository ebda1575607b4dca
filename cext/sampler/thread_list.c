#define _GNU_SOURCE
#include "sampler/thread_list.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/calls.h"
#include "sampler/memory.h"
#include "sampler/native_code.h"
#include "sampler/schedule.h"
#include "sampler/thread_counts.h"

enum {
    THREADS_AT_MOST = 4096,
    LISTED_EVERY = 50, /* samples, even if nothing says that a thread has come or gone */
    STATE_BYTES = 1024,
};

static bool read_word(const struct sampled_process *process, uint64_t address, uint64_t *word)
{
    return remote_read(process->reached, address, word, sizeof *word);
}

static bool follow_interpreters(const struct sampled_process *process, struct interpreters *found)
{
    const struct interpreter_layout *layout = &process->layout;
    uint64_t address;
    found->count = 0;
    if (!read_word(process, layout->runtime + layout->interpreters, &address))
        return false;
    while (address && found->count < INTERPRETERS_AT_MOST) {
        found->address[found->count] = address;
        if (!read_word(process, address + layout->interpreter_threads, &found->first_thread[found->count]) ||
            !read_word(process, address + layout->interpreter_next, &address))
            return found->count > 0;
        found->count++;
    }
    return true;
}

/* By one call; false if it is no longer the only one. */
static bool read_only_one(const struct sampled_process *process, struct interpreters *known)
{
    const struct interpreter_layout *layout = &process->layout;
    uint64_t first, next, first_thread, only = known->address[0];
    struct remote_piece pieces[] = {
        {layout->runtime + layout->interpreters, &first, sizeof first},
        {only + layout->interpreter_threads, &first_thread, sizeof first_thread},
        {only + layout->interpreter_next, &next, sizeof next},
    };
    if (known->count != 1 || remote_read_pieces(process->reached, pieces, 3) < 3 || first != only || next)
        return false;
    known->first_thread[0] = first_thread;
    return true;
}

static struct sampled_thread *known_thread(const struct sampled_process *process, uint32_t tid)
{
    for (uint32_t index = 0; index < process->thread_count; index++)
        if (process->threads[index].tid == tid)
            return &process->threads[index];
    return NULL;
}

static struct sampled_thread *thread_of(struct sampled_process *process, uint32_t tid)
{
    struct sampled_thread *known = known_thread(process, tid);
    if (known)
        return known;
    if (process->thread_count == process->thread_room) {
        uint32_t room = process->thread_room ? 2 * process->thread_room : 8;
        struct sampled_thread *larger = room <= THREADS_AT_MOST ? realloc(process->threads, room * sizeof *larger) : NULL;
        if (!larger)
            return NULL;
        process->threads = larger;
        process->thread_room = room;
    }
    struct sampled_thread *thread = &process->threads[process->thread_count++];
    memset(thread, 0, sizeof *thread);
    thread->tid = tid;
    thread->files = schedule_open(process->pid, tid);
    thread_counts_begin(process, thread);
    return thread;
}

static bool has_frame(const struct sampled_process *process, const char *state)
{
    const struct interpreter_layout *layout = &process->layout;
    uint64_t frame = word_at(state, STATE_BYTES, layout->thread_frame);
    return frame && (!layout->thread_steps || (read_word(process, frame + layout->step_frame, &frame) && frame));
}

static bool is_task(const struct sampled_process *process, uint32_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%u", (int)process->pid, tid);
    return access(path, F_OK) == 0;
}

/* The first thread of a child that C code forked without telling its Python: its state still has the number of the thread that
   forked. It is the oldest such state: there may also be states of threads that have ended. */
static void note_first_thread(struct sampled_process *process)
{
    const struct sampled_thread *known = known_thread(process, (uint32_t)process->pid);
    bool is_unknown = process->unnumbered && !(known && known->is_seen);
    struct sampled_thread *first = is_unknown ? thread_of(process, (uint32_t)process->pid) : NULL;
    if (!first)
        return;
    first->address = process->unnumbered;
    first->is_seen = true;
}

/* A state that is made for a thread which has not begun has no thread number yet, and nothing else will say that the thread has
   begun. To the kernel 0 is the monitor itself.

   A thread that runs in several interpreters has a state in each: the newest interpreter that has a frame is the one to look at.
   Newer ones are noted first, and run what older ones have called. */
static void note_thread(struct sampled_process *process, uint64_t address, const char *state)
{
    uint32_t tid = (uint32_t)word_at(state, STATE_BYTES, process->layout.thread_tid);
    if (tid && !known_thread(process, tid) && !is_task(process, tid)) {
        process->unnumbered = address;
        return;
    }
    struct sampled_thread *thread = tid ? thread_of(process, tid) : NULL;
    process->is_unsettled = process->is_unsettled || !tid || (thread && thread->is_seen);
    if (!thread)
        return;
    if (thread->is_seen && thread->has_frame)
        return;
    thread->address = address;
    thread->is_seen = true;
    thread->has_frame = has_frame(process, state);
}

static void note_threads(struct sampled_process *process, uint64_t address)
{
    const struct interpreter_layout *layout = &process->layout;
    char state[STATE_BYTES];
    for (unsigned count = 0; address && count < THREADS_AT_MOST; count++) {
        if (!remote_read(process->reached, address, state, layout->thread_bytes))
            return;
        note_thread(process, address, state);
        address = word_at(state, sizeof state, layout->thread_next);
    }
}

/* --- where no interpreter lists them */

enum { PATH_BYTES_AT_MOST = 32 };

static const char *path_of_tasks(const struct sampled_process *process, char path[PATH_BYTES_AT_MOST])
{
    snprintf(path, PATH_BYTES_AT_MOST, "/proc/%d/task", (int)process->pid);
    return path;
}

static bool count_tasks(struct sampled_process *process, uint64_t *count)
{
    char path[PATH_BYTES_AT_MOST];
    struct stat status;
    bool is_known = stat(path_of_tasks(process, path), &status) == 0 && status.st_nlink > 2; /* it has two links of its own */
    *count = is_known ? status.st_nlink - 2 : 0;
    return is_known;
}

static void note_tasks(struct sampled_process *process)
{
    char path[PATH_BYTES_AT_MOST];
    DIR *tasks = opendir(path_of_tasks(process, path));
    struct dirent *each;
    if (!tasks)
        return;
    for (unsigned count = 0; count < THREADS_AT_MOST && (each = readdir(tasks));) {
        uint32_t tid = (uint32_t)strtoul(each->d_name, NULL, 10);
        struct sampled_thread *thread = tid ? thread_of(process, tid) : NULL;
        if (thread)
            thread->is_seen = true;
        count += thread != NULL;
    }
    closedir(tasks);
}

/* --- */

void thread_write_pending(struct sampled_process *process, struct sampled_thread *thread)
{
    if (thread->pending.sample.time_ns)
        thread_counts_write(process, thread, &thread->pending);
    for (unsigned index = 0; index < thread->asked.count; index++)
        thread_counts_write(process, thread, &thread->asked.taken[index]);
    thread->pending.sample.time_ns = thread->asked.count = 0;
}

static void forget_thread(struct sampled_process *process, uint32_t index)
{
    struct sampled_thread *thread = &process->threads[index];
    native_code_tell(process, thread);
    thread_write_pending(process, thread);
    if (thread->doubt.is_open)
        thread_counts_write(process, thread, &thread->doubt.taken);
    thread_counts_end(process, thread);
    instructions_end(&thread->instructions);
    schedule_close(thread->files);
    *thread = process->threads[--process->thread_count];
}

static void list_again(struct sampled_process *process)
{
    for (uint32_t index = 0; index < process->thread_count; index++)
        process->threads[index].is_seen = false;
    process->is_unsettled = false;
    process->unnumbered = 0;
    for (unsigned index = 0; index < process->interpreters.count; index++)
        note_threads(process, process->interpreters.first_thread[index]);
    note_first_thread(process);
    if (!has_interpreter(process))
        note_tasks(process);
    for (uint32_t index = process->thread_count; index > 0; index--)
        if (!process->threads[index - 1].is_seen)
            forget_thread(process, index - 1);
}

/* Whether threads that were recorded are no longer: the recording has ended, unless a new thread soon records something. Who has
   recorded nothing yet may still do so. */
static void see_whether_it_is_over(struct sampled_process *process)
{
    bool is_recorded = false;
    for (uint32_t index = 0; index < process->thread_count && !is_recorded; index++)
        is_recorded = call_is_recorded(process, &process->threads[index]);
    process->is_over = process->was_recorded && process->thread_count && !is_recorded;
    process->was_recorded = process->was_recorded || is_recorded;
}

static bool find_heads(struct sampled_process *process, uint64_t *heads)
{
    struct interpreters *interpreters = &process->interpreters;
    *heads = 1;
    if (!read_only_one(process, interpreters) && !follow_interpreters(process, interpreters))
        return false;
    for (unsigned index = 0; index < interpreters->count; index++)
        *heads = key_of(*heads, interpreters->first_thread[index]);
    return true;
}

/* The thread through which they were read may have ended. */
static bool find_heads_again(struct sampled_process *process, uint64_t *heads)
{
    return find_heads(process, heads) || (memory_reach(process) && find_heads(process, heads));
}

/* False after an exec: the next program would be sampled in its place, with the addresses of the first. */
static bool is_the_program(const struct sampled_process *process)
{
    char byte;
    return process->environment < 0 || pread(process->environment, &byte, 1, 0) == 1;
}

bool threads_list(struct sampled_process *process)
{
    uint64_t heads;
    if (!is_the_program(process))
        return false;
    if (!(has_interpreter(process) ? find_heads_again(process, &heads) : count_tasks(process, &heads)))
        return false;
    if (heads != process->heads_seen || process->until_listed == 0) {
        list_again(process);
        process->heads_seen = heads;
        see_whether_it_is_over(process);
        process->until_listed = process->is_unsettled || process->is_over ? 1 : LISTED_EVERY;
    }
    process->until_listed--;
    return true;
}

void threads_forget(struct sampled_process *process)
{
    while (process->thread_count)
        forget_thread(process, process->thread_count - 1);
    free(process->threads);
    process->threads = NULL;
    process->thread_room = 0;
}
