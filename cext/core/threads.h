/* The threads that record: what each needs at every call, and what recording takes of its time. */
#pragma once

#include <stdbool.h>

#include "core/child_usage.h"
#include "core/clock.h"
#include "core/intern.h"
#include "core/pool.h"
#include "core/series.h"
#include "core/statement_pattern.h"

enum { GATHERINGS = 8 }; /* cursors that a thread iterates over at a time */

enum { THREAD_NAME_BYTES = 801, THREAD_NAME_TRIES = 8 }; /* as long as a filter can say */

/* Room for a text that is written while a call is recorded; one more byte tells that it was cut. */
struct scratch {
    char text[STRING_BYTES + 1];
    struct statement_patterns patterns;
};

/* The transaction that data collectors gave a name to last, outside and inside of one that is known without them. */
enum { NAMED_OUTSIDE, NAMED_INSIDE, NAMED, NAMED_BYTES = 128 };
struct named {
    uint32_t within; /* the call that is the transaction around, or 0 */
    uint32_t bytes;  /* of the text, without its zero */
    char text[NAMED_BYTES];
};

/* A cursor that rows are fetched from, one after the other from one place, and the event that they are added to
   (hooks/fetches.h). */
struct gathering {
    const void *owner; /* compared, never dereferenced; NULL: none */
    struct block *block;
    uint64_t sequence; /* of the block, when the event was put into it */
    uint64_t first_ns;
    uint32_t intrinsic, stack, parent, place, fetches;
};

/* The wait for the interpreter lock that a thread is in (hooks/gil_waits.h). */
struct lock_wait {
    struct reading begin;
    uint32_t call; /* 0: it is in none that is recorded */
    uint32_t index;
    uint32_t stack; /* where it gave the lock up last while others waited */
};

/* A native call that a thread is in (native/native_call.h). */
struct native_progress {
    uint32_t call; /* 0: it is in none that is recorded */
    uint32_t index;
    uint32_t newest; /* the thread's newest call then; if a newer one exists, this one was left by a jump */
    bool is_inside; /* it is in the real function */
    uintptr_t frame; /* the address of its wrapper's frame: the stack was unwound if a later one is farther out */
};

enum { INTERRUPTED_CALLS = 4 }; /* nested signal handlers; calls of deeper ones are not recorded */

/* What a thread needs at every call. In memory that a forked child finds zeroed (MADV_WIPEONFORK), so that no child,
   however it was forked, writes into its parent's experiment. */
struct thread {
    uint32_t recording;
    uint32_t number;
    uint32_t calls;
    uint32_t ended;
    uint32_t fork;      /* number of its last fork */
    uint32_t own_depth; /* nesting depth of recording code */
    uint32_t describing; /* the innermost call in its table has ended, and its event is being written */
    uint32_t quiet;     /* calls are made by interpose itself */
    uint32_t writing;   /* its state is being written: calls of a signal handler meanwhile are not recorded */
    uint32_t serving;   /* the intrinsic of the call that waits for a request to answer, or 0 */
    uint32_t marked;    /* transactions that the program began in coroutines, and that are in progress */
    uint32_t works_for; /* the number of the thread for whose transaction it runs a call, or 0 */
    uint32_t in_loop;   /* an event loop runs on it: calls may belong to a task */
    uint32_t greenlet;  /* task id of the running greenlet, or 0 */
    uint64_t delay_before_ns; /* its run-queue delay when it began to record */
    uint64_t triggered_ns; /* when a call of it last fired a trigger */
    uint64_t look_ns;   /* when to check next what the thread and its process have used */
    struct thread_record *record;
    struct block *block;
    struct thread *next;
    struct clock clock;
    struct lock_wait lock_wait;
    struct native_progress native, outermost, tls; /* the latter two may have others inside: of a database, of an encrypted connection */
    struct native_progress interrupted[INTERRUPTED_CALLS]; /* native calls that signal handlers interrupted */
    uint32_t interruptions;
    struct cached native_place, native_stack; /* where its last native call came from: without and with the C code */
    uint64_t readable; /* the part of its stack that was found readable (native/native_stacks.c) */
    struct child_waits waits; /* for children (core/children.h) */
    void *lines; /* its part of the line trace (lines/lines.h), or NULL */
    struct carried *carried; /* the trace contexts of its calls (core/trace_contexts.h), or NULL */
    struct scratch *scratch; /* made when first asked for */
    void *lent; /* to its children of vfork(2), one at a time (core/spare_stack.h), or NULL */
    uint32_t is_shared; /* it has others in its memory, which run beside it */
    uint32_t statements; /* short ones that were normalised */
    uint32_t name_tries; /* how often its name was looked for */
    uint32_t gatherings; /* of the next that were ever used */
    uint32_t next_gathering;
    const void *asks; /* the filter's rules that it is just asking (core/filter_rules.h), or NULL */
    struct gathering gathering[GATHERINGS];
    char name[THREAD_NAME_BYTES]; /* in Python, or what there is room for; empty if it has none */
    struct named named[NAMED];
};

VISIBLE extern __thread struct thread *current_thread __attribute__((tls_model("initial-exec")));

/* Does it record? The thread that ends the recording says so of all others. */
static inline bool thread_records(const struct thread *thread)
{
    return thread && __atomic_load_n(&thread->recording, __ATOMIC_RELAXED);
}

/* Let the calling thread record, if anything is recorded in this process; NULL if not. */
VISIBLE struct thread *thread_enter(void);

/* NULL if there is no room. */
struct scratch *thread_scratch(struct thread *thread);

/* The time between the two is cost of recording; they can be nested. The second form multiplies it, for work that
   is timed by samples. */
VISIBLE struct reading own_begin(struct thread *thread);
VISIBLE void own_end(struct thread *thread, struct reading begin);
/* The same for other work of interpose, such as checking a limit: it is taken out of the self time of the call in
   progress. */
VISIBLE void own_end_apart(struct thread *thread, struct reading begin);
void own_end_for(struct thread *thread, struct reading begin, uint64_t times);

/* Where a thread is in its first block, and back to there as if nothing had been called since: for calibration. */
struct thread_mark {
    uint64_t made, recorded, dropped;
    uint32_t calls, used;
};
VISIBLE struct thread_mark thread_mark(const struct thread *thread);
VISIBLE void thread_rewind(struct thread *thread, struct thread_mark mark);

/* --- for the recorder alone; the caller holds the exclusive lock, or is the process's only thread */

/* Make what threads need once in a process. 0 or the error's number. */
int threads_prepare(void);

/* Create the file of their records. 0 or the error's number. */
int threads_create(const char *directory);

/* Its head, followed by the control page; NULL if no recording has files. */
struct file_head *threads_head(void);
void threads_forget_head(void);

/* Forget those of an earlier recording: living threads begin again in their own places. A forked child has one. */
void threads_forget(void);
void threads_begin_child(void);

/* The thread with which the session began: the time since then is its cost of recording. False if it cannot record. */
bool threads_begin_main(void);

/* Clear away those that have ended: their blocks go to `pool`, for threads that come. */
void threads_collect(struct pool *pool);

/* The calling thread records from now on; listeners are informed. Not under the lock, because other code is called. */
void thread_tell_beginning(void);

/* Nobody records any longer; `process_ends`: and nobody continues. */
void threads_stop(bool process_ends);

/* Is one of them just asking these rules of the filter? */
bool threads_ask(const void *rules);

/* Sum of how long all of them waited for a processor. */
uint64_t threads_run_delay_ns(void);

/* Note when the thread was seen last, and what its clock said. */
void thread_note_clock(struct thread *thread, struct reading now);

/* Note how long the calling thread has waited for a processor since it began to record, as the kernel counts it. */
void thread_note_run_delay(struct thread *thread);
