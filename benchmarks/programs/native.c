/* What C code that reads does: `times` reads of a few bytes at a known place; and what C code with threads does. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Nanoseconds a read; below 0 if one fails. */
double reads_ns(int number, long times)
{
    char bytes[16];
    double begun_ns = now_ns();
    for (long each = 0; each < times; each++)
        if (pread(number, bytes, sizeof bytes, 0) < 0)
            return -1;
    return (now_ns() - begun_ns) / (double)times;
}

/* Nanoseconds to take and give back a mutex that is free. */
double locks_ns(int number, long times)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    double begun_ns = now_ns();
    (void)number;
    for (long each = 0; each < times; each++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    return (now_ns() - begun_ns) / (double)times;
}
