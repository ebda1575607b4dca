/* Threads record from their beginning on: what one computes that makes no recorded call is known, too. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "program/program_host.h"

/* What a thread begins with, until it has begun. Where all are taken a thread begins by itself, and records from its first call on. So
   do those of a program that starts them by the thousand: to record one takes longer than to start it. */
enum { STARTS = 64, AT_ONCE = 256 };
static const uint64_t ONE_EACH_NS = 10000000;
struct start {
    void *(*begin)(void *);
    void *argument;
    atomic_bool is_taken;
};
static struct start starts[STARTS];

typedef int create_thread(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static void *real_pthread_create;

/* As many at once, and one more each time after that. */
static bool is_rare(void)
{
    static _Atomic uint64_t next_ns;
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &at);
    uint64_t now_ns = (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec, known_ns = next_ns, due_ns;
    do {
        due_ns = known_ns > now_ns ? known_ns : now_ns;
        if (due_ns - now_ns > AT_ONCE * ONE_EACH_NS)
            return false;
    } while (!atomic_compare_exchange_weak(&next_ns, &known_ns, due_ns + ONE_EACH_NS));
    return true;
}

static struct start *take_start(void)
{
    for (unsigned index = 0; index < STARTS; index++)
        if (!atomic_exchange_explicit(&starts[index].is_taken, true, memory_order_acquire))
            return &starts[index];
    return NULL;
}

static void give_back(struct start *start)
{
    atomic_store_explicit(&start->is_taken, false, memory_order_release);
}

static void *begin_thread(void *given)
{
    struct start *start = given;
    void *(*begin)(void *) = start->begin, *argument = start->argument;
    int saved = errno;
    give_back(start);
    recording();
    errno = saved;
    return begin(argument);
}

static int program_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*begin)(void *), void *argument)
{
    create_thread *create = (create_thread *)real_pthread_create;
    struct start *start = recording() && is_rare() ? take_start() : NULL;
    if (!start)
        return create(thread, attributes, begin, argument);
    start->begin = begin;
    start->argument = argument;
    int failed = create(thread, attributes, begin_thread, start);
    if (failed)
        give_back(start);
    return failed;
}

void program_exchange_threads(void)
{
    program_exchange((struct native_exchange){"pthread_create", (void *)program_pthread_create, &real_pthread_create, false, NULL});
}
