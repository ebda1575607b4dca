/* What recording leaves free on the file system that it writes to, for the program and everybody else. */
#pragma once

#include <stdint.h>

/* The larger of 5 % of the file system and 256 MiB. One that is smaller than that as a whole is left free altogether. */
#define RESERVE_AUTO UINT64_MAX
#define RESERVE_LEAST_BYTES (256ull << 20)
enum { RESERVE_PARTS = 20 };

/* Leave so much free; 0: nothing. */
void reserve_choose(uint64_t bytes);

/* How much that is on the file system of a directory; 0 if nothing is left free, or that cannot be said. */
uint64_t reserve_on(const char *directory);

/* May `bytes` more be written to the file system of an open file? 0, or RESERVE_REACHED. */
int reserve_allows(int opened, uint64_t bytes);
