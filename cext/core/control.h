/* The control page: what somebody outside says to all processes of an experiment, and what these say of the pool. */
#pragma once

#include "core/recording.h"

/* Nothing is recorded: a page for which nobody looks. */
void control_forget(void);

/* Find the page: the founder's is for the whole experiment. */
void control_begin(void);

/* Where that was chosen, nothing is recorded from the founder's beginning on, until somebody says so. */
void control_choose_paused(bool at_first);
void control_begin_paused(void);

/* What was said from outside; `paused` and, above it, `samples_wanted`. */
static inline uint64_t said_from_outside(void)
{
    typedef uint64_t __attribute__((may_alias)) both;
    return __atomic_load_n((const both *)&recorder.control->paused, __ATOMIC_RELAXED);
}

/* In the place of what was heeded: calls go by that are not looked at. Nobody says this from outside. */
#define LOOKED_AWAY UINT64_MAX

/* Do what was said from outside; whether nothing is to be recorded for a while. */
VISIBLE bool recorder_heed(void);

/* Nothing is to be recorded for a while, as somebody outside says. */
static inline bool recorder_paused(void)
{
    return UNLIKELY(said_from_outside() != __atomic_load_n(&recorder.heeded, __ATOMIC_RELAXED)) && recorder_heed();
}

/* Have nothing recorded for a while, or go on, in all processes of the experiment, as somebody outside may. */
VISIBLE void recorder_turn(bool paused);

/* Record from now on only what the filter lets pass: that of the founder, which is `text` where this is the founder and
   there is one. 0 or the error's number. */
VISIBLE int recorder_filter(const char *text, size_t bytes);

/* The filter that holds is taken again: a forked child begins. */
void control_take_filter(void);

/* A trigger fired: it is counted, with the time and the process, for whoever looks at the control page. */
VISIBLE void recorder_trigger(void);
