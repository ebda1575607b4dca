/* The files of a process of the kernel's view that are written from C: events and threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/fields.h"
#include "core/pool.h"

/* A block of events and its place in the file. It is written whole, when it is full and now and then before. */
struct held_block {
    struct held_block *next; /* of those that ended threads left */
    uint64_t at;
    bool has_changed;
    struct block is;
};

struct kernel_files {
    int events, threads; /* -1: nothing is written */
    int failed;          /* why, from then on */
    uint64_t end, sequence;
    struct held_block *left;
};

/* Make the files in the directory, which has none. 0 or the error's number. */
int kernel_files_begin(struct kernel_files *files, const char *directory);
void kernel_files_end(struct kernel_files *files);

/* A block for a thread, which has room; NULL if there is none. */
struct held_block *kernel_block_take(struct kernel_files *files, uint32_t thread);

/* Write it, and as the last if it is full. */
void kernel_block_write(struct kernel_files *files, struct held_block *block);

/* The thread has ended: another one continues in the block. */
void kernel_block_leave(struct kernel_files *files, struct held_block *block);

void kernel_thread_write(struct kernel_files *files, uint32_t number, const struct thread_record *record);
