/* Memory of another process, read while that runs: it may change meanwhile, so nothing is believed before it is
   checked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One piece: from `address` there to `into` here. */
struct remote_piece {
    uint64_t address;
    void *into;
    size_t bytes;
};

enum { PIECES_AT_MOST = 48 };

/* Read all of it; false if that cannot be read whole. */
bool remote_read(pid_t process, uint64_t address, void *into, size_t bytes);

/* The same of several in one call. Returns how many, from the first on, were read whole. */
unsigned remote_read_pieces(pid_t process, const struct remote_piece *pieces, unsigned count);

/* A word at `offset` of `bytes` that were read; 0 if it is outside. */
uint64_t word_at(const void *from, size_t bytes, uint64_t offset);
uint32_t half_word_at(const void *from, size_t bytes, uint64_t offset);
