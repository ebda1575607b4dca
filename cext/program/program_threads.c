/* Threads record from their beginning on: what one computes that makes no recorded call is known, too. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "program/program_host.h"

/* What a thread begins with, until it has begun. Where all are taken a thread begins by itself, and records from its first call on. */
enum { STARTS = 64 };
struct start {
    void *(*begin)(void *);
    void *argument;
    atomic_bool is_taken;
};
static struct start starts[STARTS];

typedef int create_thread(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static void *real_pthread_create;

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
    struct start *start = recording() ? take_start() : NULL;
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
