/* What wakes the sampler: the time of the next sample, a perf event that has noted where a thread is, or somebody who wants it
   to end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct waking {
    int stop, timer, all; /* `all` is an epoll of the others, and of the events */
    uint64_t timer_ns;    /* what the timer is set to */
};

enum woken { WOKEN_TO_END, WOKEN_TO_SAMPLE, WOKEN_BY_THREAD };

/* False with errno set. */
bool waking_begin(struct waking *waking);
void waking_end(struct waking *waking);

/* Any thread may say so. */
void waking_stop(const struct waking *waking);

/* Have an event of a thread wake it, until that is closed. */
bool waking_add(const struct waking *waking, int event, uint32_t tid);

/* Sleep until there is something to do, at `time_ns` at the latest; `tid` is the thread that has woken it. */
enum woken waking_wait(struct waking *waking, uint64_t time_ns, uint32_t *tid);
