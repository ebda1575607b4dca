/* Starts threads that do nothing, and joins them, one after the other; prints the CPU time of one in nanoseconds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void *nothing(void *given)
{
    return given;
}

int main(int count, char **words)
{
    long threads = count > 1 ? atol(words[1]) : 1;
    double begun_ns = cpu_ns();
    for (long each = 0; each < threads; each++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
            return 1;
    }
    printf("%g\n", (cpu_ns() - begun_ns) / (double)threads);
    return 0;
}
