/* The names of errors of native calls. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The number in strings of an error's name, such as ENOENT; 0 for one that only means that nothing was there yet, or
   that a signal came. `of_look_up`: it is one of getaddrinfo's. */
uint32_t native_error(bool of_look_up, int error);
