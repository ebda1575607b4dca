/* The names of errors of native calls. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The number in strings of an error's name, such as ENOENT; 0 for one that only means that nothing was there yet, or
   that a signal came. `of_look_up`: it is one of getaddrinfo's. */
uint32_t native_error(bool of_look_up, int error);

/* The same of a result of C11's functions of threads, which have numbers of their own; that the time was over is no
   error. errno stays as it is. */
enum { THREAD_BUSY = 1, THREAD_ERROR, THREAD_NO_MEMORY, THREAD_TIMED_OUT };
uint32_t failed_thread(int result);
