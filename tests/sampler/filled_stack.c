/* Calls a function again and again, and fills with ones the stack where it kept what it needed. */
#include <string.h>

static __attribute__((noinline)) void fill(void)
{
    char bytes[4096];
    memset(bytes, 0xff, sizeof bytes);
    __asm__ volatile("" : : "r"(bytes) : "memory");
}

void call_and_fill(void (*function)(void), long times)
{
    for (long each = 0; each < times; each++) {
        function();
        fill();
    }
}
