/* Reads a byte again and again, ten functions deep, and prints the nanoseconds of the fastest read. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 15, CALLS = 50000 };

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static __attribute__((noipa)) int reads(int zero)
{
    char byte;
    int bytes = 0;
    for (int call = 0; call < CALLS; call++)
        bytes += (int)read(zero, &byte, 1);
    return bytes;
}

#define FUNCTION(name, called) \
    static __attribute__((noipa)) int name(int zero) \
    { \
        return called(zero) + 1; \
    }
FUNCTION(ninth, reads)
FUNCTION(eighth, ninth)
FUNCTION(seventh, eighth)
FUNCTION(sixth, seventh)
FUNCTION(fifth, sixth)
FUNCTION(fourth, fifth)
FUNCTION(third, fourth)
FUNCTION(second, third)

int main(void)
{
    int zero = open("/dev/zero", O_RDONLY);
    double least_ns = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double begin_ns = now_ns();
        if (second(zero) != CALLS + 8)
            return 1;
        double took_ns = now_ns() - begin_ns;
        least_ns = took_ns < least_ns ? took_ns : least_ns;
    }
    printf("%.1f\n", least_ns / CALLS);
    return 0;
}
