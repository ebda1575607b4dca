#define _GNU_SOURCE
#include "sampler/waking.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* An event is told by its descriptor and its thread's number. */
static const uint64_t BY_STOP = UINT64_MAX, BY_TIMER = UINT64_MAX - 1;

static bool add(const struct waking *waking, int file, uint64_t by)
{
    struct epoll_event about = {.events = EPOLLIN, .data.u64 = by};
    return file >= 0 && epoll_ctl(waking->all, EPOLL_CTL_ADD, file, &about) == 0;
}

bool waking_begin(struct waking *waking)
{
    waking->stop = eventfd(0, EFD_CLOEXEC);
    waking->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    waking->all = epoll_create1(EPOLL_CLOEXEC);
    if (add(waking, waking->stop, BY_STOP) && add(waking, waking->timer, BY_TIMER))
        return true;
    int failed = errno;
    waking_end(waking);
    errno = failed;
    return false;
}

void waking_end(struct waking *waking)
{
    int files[] = {waking->stop, waking->timer, waking->all};
    for (unsigned index = 0; index < sizeof files / sizeof *files; index++)
        if (files[index] >= 0)
            close(files[index]);
}

void waking_stop(const struct waking *waking)
{
    (void)!write(waking->stop, &(uint64_t){1}, sizeof(uint64_t));
}

bool waking_add(const struct waking *waking, int event, uint32_t tid)
{
    return add(waking, event, (uint64_t)(uint32_t)event << 32 | tid);
}

static void set_timer(struct waking *waking, uint64_t time_ns)
{
    struct itimerspec due = {.it_value = {(time_t)(time_ns / 1000000000u), (long)(time_ns % 1000000000u)}};
    if (waking->timer_ns != time_ns && timerfd_settime(waking->timer, TFD_TIMER_ABSTIME, &due, NULL) == 0)
        waking->timer_ns = time_ns;
}

enum woken waking_wait(struct waking *waking, uint64_t time_ns, uint32_t *tid)
{
    struct epoll_event woken;
    set_timer(waking, time_ns);
    for (;;) {
        if (epoll_wait(waking->all, &woken, 1, -1) != 1)
            continue; /* by a signal */
        if (woken.data.u64 == BY_STOP)
            return WOKEN_TO_END;
        if (woken.data.u64 == BY_TIMER)
            return WOKEN_TO_SAMPLE;
        *tid = (uint32_t)woken.data.u64;
        if (woken.events != EPOLLIN) /* the thread has ended, and may have a note still */
            epoll_ctl(waking->all, EPOLL_CTL_DEL, (int)(woken.data.u64 >> 32), NULL);
        if (woken.events & EPOLLIN)
            return WOKEN_BY_THREAD;
    }
}
