/* Whether this thread records, and what every call checks to know what to record. */
#pragma once

#include "core/settings.h"
#include "core/threads.h"

/* What has something to do before a recording ends. */
enum end_step { END_LINES, END_HEAP, END_MARKS, END_STEPS };

/* What the shims look at; the rest of the recorder's state is in the file that it belongs to.

   The functions are called without the recorder's lock, in the thread that the beginning, the pause or the filter was
   noticed in. What needs the interpreter's lock has to ask whether the thread has it. */
struct recorder {
    uint32_t on;
    uint32_t serial; /* of the recording in this process; caches of an earlier one are void */
    uint64_t long_ns; /* the lesser of the next two, of those that matter */
    uint64_t stack_above_ns;
    uint64_t trigger_above_ns;
    uint64_t wait_above_ns; /* shorter waits for locks and their like are counted, not recorded */
    uint32_t stack_kept; /* stacks are recorded at all */
    uint32_t native_functions; /* a native call keeps the functions that led to it */
    uint32_t all_waits;  /* free locks are recorded as well */
    uint32_t rows;       /* enum rows */
    uint32_t trigger_exit;
    uint32_t governed; /* what costs too much is lowered */
    uint32_t dialogue; /* whether the dialogue of terminals is kept */
    uint64_t interval_ns; /* of CPU time: calls are sampled, one is recorded where it runs as one ends; 0: all are */
    char trigger_errors[512];
    struct control *control; /* of the whole experiment; never NULL */
    uint64_t heeded;         /* the requests from outside that were handled */
    void (*before_end[END_STEPS])(void); /* to be called before a recording ends, or NULL */
    void (*thread_begins)(void); /* when a thread is first seen, or NULL; with the interpreter's lock */
    void (*thread_met)(void);    /* at the same time: for what is true of it already, such as its name */
    void (*pause_ended)(void);     /* to be called if calls passed without a look, or NULL */
    void (*filter_changed)(void);  /* when another filter holds, or NULL */
    void (*tell_line)(void *frame); /* called when line trace reaches a line of that frame; NULL: lines are not events */
};

VISIBLE extern struct recorder recorder;

/* Is anything recorded in this process? */
static inline bool recorder_is_on(void)
{
    return __atomic_load_n(&recorder.on, __ATOMIC_RELAXED);
}

/* The calling thread, if its calls are to be recorded now. */
static inline struct thread *recording(void)
{
    struct thread *thread = current_thread;
    if (LIKELY(thread && __atomic_load_n(&thread->recording, __ATOMIC_RELAXED)))
        return thread;
    return recorder_is_on() ? thread_enter() : NULL;
}
