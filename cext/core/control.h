/* The control page: requests from outside to all processes of an experiment, and what these say about the pool. */
#pragma once

#include "core/recording.h"

/* Nothing is recorded: use a page that nobody else sees. */
void control_forget(void);

/* Find the page: the founder's is for the whole experiment. */
void control_begin(void);

/* If so chosen, record nothing from the founder's beginning on, until a request resumes it. */
void control_choose_paused(bool at_first);
void control_begin_paused(void);

/* The requests from outside; `paused` and, above it, `samples_wanted`. */
static inline uint64_t said_from_outside(void)
{
    typedef uint64_t __attribute__((may_alias)) both;
    return __atomic_load_n((const both *)&recorder.control->paused, __ATOMIC_RELAXED);
}

/* In place of what was handled: calls pass without a look. Nobody requests this from outside. */
#define LOOKED_AWAY UINT64_MAX

/* Handle requests from outside; return whether recording is paused. */
VISIBLE bool recorder_heed(void);

/* Pause, as a request from outside does. */
static inline bool recorder_paused(void)
{
    return UNLIKELY(said_from_outside() != __atomic_load_n(&recorder.heeded, __ATOMIC_RELAXED)) && recorder_heed();
}

/* Pause or resume all processes of the experiment, as a request from outside can. */
VISIBLE void recorder_turn(bool paused);

/* Record from now on only what the filter lets pass: that of the founder, which is `text` where this is the founder and
   there is one. 0 or the error's number. */
VISIBLE int recorder_filter(const char *text, size_t bytes);

/* The filter that holds is taken again: a forked child begins. */
void control_take_filter(void);

/* A trigger fired: count it, with the time and the process, for readers of the control page. */
VISIBLE void recorder_trigger(void);

/* The same for a call that began then, unless one fired in the thread since: for that which lies inside of it. */
VISIBLE void recorder_trigger_once(struct thread *thread, uint64_t begun_ns);
