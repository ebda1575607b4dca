/* Writes the files `events` and `threads` of a process that is recorded with the kernel's view. Python code writes the others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/fields.h"
#include "core/pool.h"

/* A block of events and its offset in the file. It is always written whole: when it is full, and now and then before. */
struct held_block {
    struct held_block *next; /* in the list of blocks that ended threads left */
    uint64_t at;
    bool has_changed;
    struct block is;
};

struct kernel_files {
    int events, threads; /* -1: nothing is written */
    int failed;          /* the errno, after which nothing is written */
    uint64_t end, sequence;
    struct held_block *left;
};

/* Create the files in the directory. Returns 0 or an errno. */
int kernel_files_begin(struct kernel_files *files, const char *directory);
void kernel_files_end(struct kernel_files *files);

/* A block with room for events of the thread; NULL if there is none. */
struct held_block *kernel_block_take(struct kernel_files *files, uint32_t thread);

/* Write the block; a full one is written for the last time. */
void kernel_block_write(struct kernel_files *files, struct held_block *block);

/* The thread has ended: another thread may use the rest of the block. */
void kernel_block_leave(struct kernel_files *files, struct held_block *block);

void kernel_thread_write(struct kernel_files *files, uint32_t number, const struct thread_record *record);
