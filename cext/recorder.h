/* The recorder: what of a process's calls is in progress, and how one becomes an event.

   The way of a call through it: `recording` (may this thread record?), `span_begin` (an entry in the table of calls in
   progress, then the clocks), the real call, `span_stop` (the clocks), `span_record` (the event, the entry taken out).
   None of these waits, allocates, raises or asks; what does (a new thread, a full block, a forked child) is out of line
   in recorder.c and timed as own cost. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "children.h"
#include "clock.h"
#include "fields.h"
#include "levels.h"
#include "pool.h"
#include "settings.h"

enum { GATHERINGS = 8 }; /* cursors that a thread iterates over at a time */

enum { THREAD_NAME_BYTES = 801, THREAD_NAME_TRIES = 8 }; /* as long as a filter can say */

/* The transaction that data collectors gave a name to last, outside and inside of one that is known without them. */
enum { NAMED_OUTSIDE, NAMED_INSIDE, NAMED, NAMED_BYTES = 128 };
struct named {
    uint32_t within; /* the call that is the transaction around, or 0 */
    uint32_t bytes;  /* of the text, without its zero */
    char text[NAMED_BYTES];
};

/* A cursor that rows are fetched from, one after the other from one place, and the event that they are added to
   (rows.h). */
struct gathering {
    const void *owner; /* compared, never looked into; NULL: there is none */
    struct block *block;
    uint64_t sequence; /* of the block, when the event was put into it */
    uint64_t first_ns;
    uint32_t intrinsic, stack, parent, place, fetches;
};

/* What a thread needs at every call. In memory that a forked child finds zeroed (MADV_WIPEONFORK), so that no child,
   however it was forked, writes into its parent's experiment. */
struct thread {
    uint32_t recording;
    uint32_t number;
    uint32_t calls;
    uint32_t ended;
    uint32_t fork;      /* number of its last fork */
    uint32_t own_depth; /* what is recording's own may call what is */
    uint32_t quiet;     /* what is called is called by us */
    uint32_t serving;   /* the intrinsic of the call that waits for a request to answer, or 0 */
    uint32_t marked;    /* transactions that the program began in coroutines, and that are in progress */
    uint32_t in_loop;   /* an event loop runs on it: what is called may be a task's */
    uint32_t greenlet;  /* the task that the greenlet is that was switched to and goes on, or 0 */
    uint64_t look_ns;   /* from when on what the thread and its process have used is to be looked at */
    struct thread_record *record;
    struct block *block;
    struct thread *next;
    struct clock clock;
    void *lines; /* its part of the line trace (lines.h), or NULL */
    uint32_t name_tries;  /* how often its name was looked for */
    uint32_t gatherings; /* of the next that were ever used */
    uint32_t next_gathering;
    struct gathering gathering[GATHERINGS];
    char name[THREAD_NAME_BYTES]; /* in Python, or what there is room for; empty where it has none */
    struct named named[NAMED];
};

/* What the shims look at; the rest of the recorder's state is its own. */
struct recorder {
    uint32_t on;
    uint32_t serial; /* of the recording in this process; caches of an earlier one are void */
    uint64_t long_ns; /* the lesser of the next two, of those that matter */
    uint64_t stack_above_ns;
    uint64_t trigger_above_ns;
    uint64_t wait_above_ns; /* shorter waits for locks and their like are counted, not recorded */
    uint32_t stack_kept; /* stacks are recorded at all */
    uint32_t all_waits;  /* free locks are recorded as well */
    uint32_t rows;       /* enum rows */
    uint32_t trigger_exit;
    uint32_t governed; /* what costs too much is lowered */
    uint32_t dialogue; /* what terminals show, and what is typed there, is kept */
    uint64_t interval_ns; /* of CPU time: calls are sampled, one is recorded where it runs as one ends; 0: all are */
    char trigger_errors[512];
    struct control *control; /* of the whole experiment; never NULL */
    uint64_t heeded;         /* what was said from outside, and done */
    void (*before_end)(void);    /* what is to be done before a recording ends, or NULL */
    void (*thread_begins)(void); /* when a thread is first seen, or NULL; with the interpreter's lock */
    void (*thread_named)(void);  /* at the same time: for its name, which it may have already */
    void (*pause_ended)(void);     /* when calls went by that were not looked at, or NULL */
    void (*filter_changed)(void);  /* when another filter holds, or NULL */
    void (*tell_line)(void *frame); /* when line trace has come to a line of that frame; NULL: lines are no events */
};

VISIBLE extern struct recorder recorder;
VISIBLE extern __thread struct thread *current_thread __attribute__((tls_model("initial-exec")));

/* Begin recording into a directory that was made for it. 0 or the error's number. */
VISIBLE int recorder_begin(const struct recorder_settings *settings);

/* Write log.xml: `head`, the process, the closing tag; and an empty map.xml. Forked children begin theirs with the
   same head. 0 or the error's number. */
VISIBLE int recorder_describe(const char *head, size_t bytes);

/* Where this process is recorded; NULL where it is not, or no longer. */
VISIBLE const char *recorder_directory(void);

/* Have the log say that something happened; `attributes` as they stand in its element. */
VISIBLE void recorder_say(const char *kind, const char *attributes);

/* Have it say what became of the transaction that this process was started in, where it was started in one. */
VISIBLE void recorder_tell_fate(void);

/* Have nothing recorded for a while, or go on, in all processes of the experiment, as somebody outside may. */
VISIBLE void recorder_turn(bool paused);

/* Record from now on only what the filter lets pass: that of the founder, which is `text` where this is the founder and
   there is one. 0 or the error's number. */
VISIBLE int recorder_filter(const char *text, size_t bytes);

/* Sample now what the process has used, and have the log say so; `attributes` as with recorder_say. */
VISIBLE void recorder_sample(const char *attributes);

/* Note a directory that the program's own code was imported from, in the log. */
VISIBLE void recorder_note_root(const char *path);

/* Keep the text of code that lies in no file; `name` is the number of the name that it has for one. */
VISIBLE void recorder_note_text(uint32_t name, const char *text, size_t bytes);

/* End of the recording, and of the process with `status` if that is known (>= 0). */
VISIBLE void recorder_end(int status);

/* End of the recording, as somebody outside wants it; the process goes on. Nothing of the files is mapped afterwards. */
VISIBLE void recorder_detach(void);

/* What the calling thread calls from now on is not recorded. */
VISIBLE void recorder_hush(void);

/* Around a fork: the parent gives the child its number, so that lineages are in the order of forks; the child begins
   its own subexperiment now, not at its first call. */
VISIBLE void recorder_forks(void);
VISIBLE void recorder_has_forked(void);
VISIBLE void recorder_forked(void);

/* Record an attempt to start a process, of the calling thread; NULL where nothing can be recorded. */
VISIBLE struct child *recorder_starts(const struct child *attempt);

/* Put entries, and the closing tag after them, into map.xml. 0 or the error's number. */
VISIBLE int recorder_map(const char *text, size_t bytes);

/* Let the calling thread record, if anything is recorded in this process; NULL if not. */
VISIBLE struct thread *thread_enter(void);

/* A trigger fired: it is counted, with the time and the process, for whoever looks at the control page. */
VISIBLE void recorder_trigger(void);

/* Count a call of a thread that cannot record. */
VISIBLE void recorder_lose(void);

/* Count a call that is not timed. */
VISIBLE void recorder_count(struct thread *thread, uint32_t intrinsic);

/* The place of the thread's next event, in a new block; NULL where there is no room. */
VISIBLE struct event *event_room(struct thread *thread);

/* From now on what costs too much is lowered. */
VISIBLE void recorder_govern(const struct governor_settings *settings);

/* Do what was said from outside; whether nothing is to be recorded for a while. */
VISIBLE bool recorder_heed(void);

/* Sample what the thread and its process have used. */
VISIBLE void thread_look(struct thread *thread);

/* Numbers for a text, a place in the code, a stack; 0 where there is no room. */
VISIBLE uint32_t string_intern(const char *text, size_t bytes);
VISIBLE uint32_t site_add(const struct site *site);
VISIBLE uint32_t stack_intern(uint32_t site, uint32_t outer, uint32_t cut);

/* The number of the normalised text of a statement, and whether literals were in it. Where a `key` stands for the whole
   statement (0: none does) it is found by it the next time. What it takes is own cost, of short statements by samples. */
VISIBLE uint32_t statement_find(uint64_t key);
VISIBLE uint32_t statement_intern(uint64_t key, const char *sql, size_t bytes, bool *literals);

/* Time between the two is recording's own; they may stand within each other. */
VISIBLE struct reading own_begin(struct thread *thread);
VISIBLE void own_end(struct thread *thread, struct reading begin);

/* Where a thread is in its first block, and back to there as if nothing had been called since: for calibration. */
struct thread_mark {
    uint64_t made, recorded, dropped;
    uint32_t calls, used;
};
VISIBLE struct thread_mark thread_mark(const struct thread *thread);
VISIBLE void thread_rewind(struct thread *thread, struct thread_mark mark);

/* A call being timed, on the stack of the shim. */
struct span {
    struct thread *thread;
    struct reading begin;
    uint64_t wall_ns, cpu_ns;
    uint32_t index, call, intrinsic, stack, detail, task;
};

/* The calling thread if its calls are to be recorded now. */
static inline struct thread *recording(void)
{
    struct thread *thread = current_thread;
    if (LIKELY(thread && thread->recording))
        return thread;
    return recorder.on ? thread_enter() : NULL;
}

/* What somebody outside says: `paused` and, above it, `samples_wanted`. */
static inline uint64_t said_from_outside(void)
{
    typedef uint64_t __attribute__((may_alias)) both;
    return __atomic_load_n((const both *)&recorder.control->paused, __ATOMIC_RELAXED);
}

/* In the place of what was heeded: calls go by that are not looked at. Nobody says this from outside. */
#define LOOKED_AWAY UINT64_MAX

/* Nothing is to be recorded for a while, as somebody outside says. */
static inline bool recorder_paused(void)
{
    return UNLIKELY(said_from_outside() != recorder.heeded) && recorder_heed();
}

/* False where the call is too deep inside others for the table: it is counted as dropped. */
static inline bool span_begin(struct span *span, struct thread *thread, uint32_t intrinsic, uint32_t stack,
                              uint32_t detail)
{
    struct thread_record *record = thread->record;
    uint32_t index = record->fields.depth;
    if (UNLIKELY(index >= OPEN_CALLS)) {
        record->fields.made++;
        record->fields.dropped++;
        return false;
    }
    struct open_call *open = &record->open[index];
    span->thread = thread;
    span->index = index;
    if (UNLIKELY(++thread->calls == 0)) /* 0 is no call's number */
        thread->calls = 1;
    span->call = thread->calls;
    span->intrinsic = intrinsic;
    span->stack = stack;
    span->detail = detail;
    span->task = 0;
    open->inner_wall_ns = 0;
    open->inner_cpu_ns = 0;
    open->call = span->call;
    open->intrinsic = intrinsic;
    open->stack = stack;
    open->detail = detail;
    span->begin = clock_read(&thread->clock);
    open->start_ns = span->begin.wall_ns;
    open->start_cpu_ns = span->begin.cpu_ns;
    record->fields.made++;
    __atomic_store_n(&record->fields.depth, index + 1, __ATOMIC_RELEASE);
    return true;
}

/* Is the call still this process's, on this thread? Not after a fork inside of it. */
static inline bool span_open(const struct span *span)
{
    const struct thread *thread = span->thread;
    return LIKELY(thread->recording && thread == current_thread && span->index < thread->record->fields.depth &&
                  thread->record->open[span->index].call == span->call);
}

/* The end of the call: read the clocks. False where its beginning was not this process's. */
static inline bool span_stop(struct span *span)
{
    if (!span_open(span))
        return false;
    struct reading end = clock_read(&span->thread->clock);
    span->wall_ns = end.wall_ns - span->begin.wall_ns;
    span->cpu_ns = end.cpu_ns - span->thread->record->open[span->index].start_cpu_ns;
    if (span->cpu_ns > span->wall_ns)
        span->cpu_ns = span->wall_ns;
    return true;
}

/* Take the call out of the table; with greenlets, calls may end in another order than that of their beginnings. */
static inline void close_call(struct thread_record *record, uint32_t index)
{
    uint32_t depth = record->fields.depth;
    record->open[index].call = 0;
    while (depth > 0 && record->open[depth - 1].call == 0)
        depth--;
    __atomic_store_n(&record->fields.depth, depth, __ATOMIC_RELEASE);
}

/* The call was no event: it is counted as passed through. What it had inside counts for the call around it. */
static inline void span_pass(const struct span *span)
{
    struct thread_record *record = span->thread->record;
    record->fields.made--;
    record->fields.passed++;
    close_call(record, span->index);
}

/* The call leaves no event, and is not counted. */
static inline void span_forget(const struct span *span)
{
    span->thread->record->fields.made--;
    close_call(span->thread->record, span->index);
}

/* There is no room for its event. */
VISIBLE void span_drop(const struct span *span);

static inline uint32_t charge_parent(struct thread_record *record, const struct span *span)
{
    if (LIKELY(span->index == 0))
        return 0;
    struct open_call *parent = &record->open[span->index - 1];
    parent->inner_wall_ns += span->wall_ns;
    parent->inner_cpu_ns += span->cpu_ns;
    return parent->call;
}

/* Where the thread's next event goes; NULL where there is no room. */
static inline struct event *event_place(struct thread *thread)
{
    struct block *block = thread->block;
    if (LIKELY(block && block->head.used < BLOCK_EVENTS))
        return &block->events[block->head.used];
    return event_room(thread);
}

/* It is there, and counts. */
static inline void event_written(struct thread *thread, uint64_t start_ns, uint64_t end_ns)
{
    struct block_head *head = &thread->block->head;
    if (start_ns < head->first_ns)
        head->first_ns = start_ns;
    if (end_ns > head->last_ns)
        head->last_ns = end_ns;
    __atomic_store_n(&head->used, head->used + 1, __ATOMIC_RELEASE);
    thread->record->fields.recorded++;
}

/* Of the CPU time of a thread up to `end_ns` as much as ends with ticks: whole intervals. The first tick of a thread comes at
   any time, or threads that end before one would never be seen. */
static inline uint64_t sampled_ns(const struct thread *thread, uint64_t end_ns, uint64_t cpu_ns)
{
    uint64_t every_ns = recorder.interval_ns;
    uint64_t phase_ns = (thread->number * 0x9e3779b97f4a7c15u >> 16) % every_ns;
    uint64_t begin_ns = end_ns > cpu_ns ? end_ns - cpu_ns : 0;
    return ((end_ns + phase_ns) / every_ns - (begin_ns + phase_ns) / every_ns) * every_ns;
}

/* The same, where calls are sampled. */
VISIBLE void span_record_sampled(const struct span *span, uint64_t bytes, uint32_t error);

/* Append the event. */
static inline void span_append(const struct span *span, uint64_t bytes, uint32_t error)
{
    struct thread *thread = span->thread;
    struct thread_record *record = thread->record;
    struct open_call *open = &record->open[span->index];
    uint32_t parent = charge_parent(record, span);
    struct event *event = event_place(thread);
    if (UNLIKELY(!event)) {
        span_drop(span);
        return;
    }
    *event = (struct event){
        .start_ns = span->begin.wall_ns,
        .start_cpu_ns = span->begin.cpu_ns,
        .wall_ns = span->wall_ns,
        .cpu_ns = span->cpu_ns,
        .inner_wall_ns = open->inner_wall_ns,
        .inner_cpu_ns = open->inner_cpu_ns,
        .bytes = bytes,
        .thread = thread->number,
        .call = span->call,
        .parent = parent,
        .intrinsic = span->intrinsic,
        .stack = span->stack,
        .detail = span->detail,
        .error = error,
        .task = span->task,
    };
    uint64_t end_ns = span->begin.wall_ns + span->wall_ns;
    event_written(thread, span->begin.wall_ns, end_ns);
    close_call(record, span->index);
    if (UNLIKELY(recorder.governed))
        governor_note(span->intrinsic);
    if (UNLIKELY(end_ns >= thread->look_ns))
        thread_look(thread);
}

/* The call has ended: its event, where it is not left out by sampling. */
static inline void span_record(const struct span *span, uint64_t bytes, uint32_t error)
{
    if (UNLIKELY(recorder.interval_ns))
        span_record_sampled(span, bytes, error);
    else
        span_append(span, bytes, error);
}
