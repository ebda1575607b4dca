#define _GNU_SOURCE
#include "core/threads.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/exclusive.h"
#include "core/fork.h"
#include "core/moved.h"
#include "core/own_thread.h"
#include "core/recorder.h"
#include "core/session.h"
#include "core/thread_notes.h"
#include "core/trace_contexts.h"
#include "core/usage.h"
#include "core/wiped.h"

__thread struct thread *current_thread __attribute__((tls_model("initial-exec")));

static struct {
    struct series records;
    struct thread *first;        /* those that record */
    struct thread *spare;        /* those that have ended and were cleared away */
    uint64_t ended_run_delay_ns; /* of those that were cleared away */
    pthread_key_t key;
    bool prepared;
} threads;

static bool has_ended(const struct thread *thread)
{
    return __atomic_load_n(&thread->ended, __ATOMIC_ACQUIRE);
}

static void set_recording(struct thread *thread, uint32_t recording)
{
    __atomic_store_n(&thread->recording, recording, __ATOMIC_RELAXED);
}

uint64_t threads_run_delay_ns(void)
{
    uint64_t sum_ns = threads.ended_run_delay_ns;
    for (const struct thread *thread = threads.first; thread; thread = thread->next)
        sum_ns += thread_run_delay_ns(thread);
    return sum_ns;
}

bool threads_ask(const void *rules)
{
    for (const struct thread *thread = threads.first; thread; thread = thread->next)
        if (__atomic_load_n(&thread->asks, __ATOMIC_SEQ_CST) == rules)
            return true;
    return false;
}

/* --- beginning */

/* A thread that ended left its memory, its buffer for texts, what it lent, and its room for trace contexts. */
static struct thread *take_thread(void)
{
    struct thread *thread = threads.spare;
    if (!thread)
        return wiped_take(sizeof *thread);
    struct scratch *scratch = thread->scratch;
    void *lent = thread->lent;
    struct carried *carried = thread->carried;
    threads.spare = thread->next;
    memset(thread, 0, sizeof *thread);
    thread->scratch = scratch;
    thread->lent = lent;
    thread->carried = carried;
    return thread;
}

struct scratch *thread_scratch(struct thread *thread)
{
    if (UNLIKELY(!thread->scratch)) {
        void *memory = mmap(NULL, sizeof *thread->scratch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        thread->scratch = memory == MAP_FAILED ? NULL : memory;
    }
    return thread->scratch;
}

/* As if it had called nothing yet; its clock, its memory and the number of its last fork stay. */
static void forget_calls(struct thread *thread)
{
    thread->block = NULL;
    thread->calls = 0;
    thread->own_depth = 0;
    thread->describing = 0;
    thread->quiet = 0;
    thread->gatherings = 0;
    thread->writing = 0;
    thread->lock_wait.call = 0;
    thread->native.call = thread->outermost.call = 0;
    thread->interruptions = 0;
    memset(thread->named, 0, sizeof thread->named);
    thread->lines = NULL;
    trace_contexts_forget(thread);
    thread->name[0] = 0;
    thread->name_tries = 0;
}

static void describe_thread(struct thread *thread, struct reading now)
{
    struct thread_fields *fields = &thread->record->fields;
    fields->start_cpu_ns = now.cpu_ns;
    fields->ident = (uint64_t)pthread_self();
    fields->tid = (uint32_t)own_thread();
    fields->main = fields->tid == (uint32_t)session.process;
    thread_note_clock(thread, now);
    __atomic_store_n(&fields->start_ns, now.wall_ns, __ATOMIC_RELEASE);
}

static bool begin_thread(struct thread *thread)
{
    struct thread_record *record = series_extend(&threads.records, THREAD_BYTES);
    if (!record)
        return false;
    forget_calls(thread);
    thread->record = record;
    thread->number = threads.records.next - 1;
    clock_begin(&thread->clock, session.clock);
    struct reading now = clock_read(&thread->clock);
    thread->look_ns = usage_next_look_ns(now.wall_ns);
    describe_thread(thread, now);
    thread_begin_run_delay(thread);
    thread->next = threads.first;
    threads.first = thread;
    set_recording(thread, 1);
    return true;
}

/* A thread left by an earlier recording, or wiped by a fork, begins again in its own place. */
static bool enter(void)
{
    struct thread *thread = session_stopped() ? NULL : current_thread ? current_thread : take_thread();
    if (!thread)
        return false;
    current_thread = thread;
    pthread_setspecific(threads.key, thread);
    if (begin_thread(thread))
        return true;
    session_stop(errno);
    return false;
}

void thread_tell_beginning(void)
{
    if (recorder.thread_begins)
        recorder.thread_begins();
    if (recorder.thread_met)
        recorder.thread_met();
}

static bool is_recording(void)
{
    return thread_records(current_thread);
}

struct thread *thread_enter(void)
{
    int saved = errno;
    bool entered = false, forked = false;
    if (exclusive_begin()) {
        bool before = is_recording();
        forked = !session_is_ours() && fork_begin_child();
        if (!before && session_is_ours() && !is_recording())
            enter();
        entered = !before && is_recording();
        exclusive_end();
    }
    if (forked && recorder.filter_changed)
        recorder.filter_changed();
    if (entered && recorder_is_on())
        thread_tell_beginning();
    errno = saved;
    return is_recording() ? current_thread : NULL;
}

bool threads_begin_main(void)
{
    if (!enter())
        return false;
    struct thread *thread = current_thread;
    struct thread_fields *fields = &thread->record->fields;
    thread_charge_own(thread, fields->start_ns - session.begun.wall_ns, fields->start_cpu_ns - session.begun.cpu_ns);
    fields->start_ns = session.begun.wall_ns;
    fields->start_cpu_ns = session.begun.cpu_ns;
    return true;
}

/* --- ending */

static void end_thread(struct thread *thread)
{
    struct reading now = clock_read(&thread->clock);
    thread_note_run_delay(thread);
    thread_note_clock(thread, now);
    __atomic_store_n(&thread->record->fields.end_ns, now.wall_ns, __ATOMIC_RELAXED);
}

/* For a thread that continues although the recording does not; called by the thread that ends it. */
static void end_other_thread(struct thread *thread)
{
    struct thread_fields *fields = &thread->record->fields;
    clockid_t clock = (clockid_t)(~fields->tid << 3 | 6); /* as the kernel names the CPU clock of a thread */
    struct timespec now;
    if (clock_gettime(clock, &now))
        return;
    uint64_t cpu_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (cpu_ns > __atomic_load_n(&fields->end_cpu_ns, __ATOMIC_RELAXED))
        __atomic_store_n(&fields->end_cpu_ns, cpu_ns, __ATOMIC_RELAXED);
    thread_note_run_delay_of_other(thread);
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    __atomic_store_n(&fields->seen_ns, now_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&fields->end_ns, now_ns, __ATOMIC_RELAXED);
}

/* Called as the thread ends. */
static void thread_exit(void *data)
{
    struct thread *thread = data;
    int cancels;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels); /* the thread has returned, and keeps its result */
    current_thread = NULL;
    if (thread_records(thread))
        end_thread(thread);
    clock_end(&thread->clock);
    __atomic_store_n(&thread->ended, 1, __ATOMIC_RELEASE);
    pthread_setcancelstate(cancels, &cancels);
}

static void put_spare(struct thread *thread)
{
    thread->next = threads.spare;
    threads.spare = thread;
}

void threads_collect(struct pool *pool)
{
    for (struct thread **link = &threads.first; *link;) {
        struct thread *thread = *link;
        if (!has_ended(thread)) {
            link = &thread->next;
            continue;
        }
        *link = thread->next;
        threads.ended_run_delay_ns += thread_run_delay_ns(thread);
        if (thread->block)
            pool_leave(pool, thread->block);
        put_spare(thread);
    }
}

void threads_stop(bool process_ends)
{
    for (struct thread *thread = threads.first; thread; thread = thread->next) {
        set_recording(thread, 0);
        if (!process_ends && thread != current_thread && !has_ended(thread))
            end_other_thread(thread);
    }
    if (current_thread && current_thread->record)
        end_thread(current_thread);
    for (struct thread *thread = threads.first; thread && !process_ends; thread = thread->next)
        clock_release(&thread->clock);
}

/* --- the list */

int threads_prepare(void)
{
    int failed = threads.prepared ? 0 : pthread_key_create(&threads.key, thread_exit);
    threads.prepared = !failed;
    return failed;
}

int threads_create(const char *directory)
{
    int failed = series_create(&threads.records, directory, &data_types[DATA_THREADS], 1);
    threads.records.keep_windows = true;
    if (!failed)
        moved_watch(threads.records.file.path, threads.records.head);
    return failed;
}

struct file_head *threads_head(void)
{
    return threads.records.head;
}

void threads_forget_head(void)
{
    threads.records.head = NULL;
}

void threads_forget(void)
{
    for (struct thread *thread = threads.first, *next; thread; thread = next) {
        next = thread->next;
        if (has_ended(thread))
            put_spare(thread);
    }
    threads.first = NULL;
    threads.ended_run_delay_ns = 0;
}

void threads_begin_child(void)
{
    threads.first = threads.spare = NULL;
}
