/* The files of an experiment as the recorder writes them: real space first, then a mapping, and no descriptor kept.
   A file grows by fallocate(2), never sparse: a write into a hole on a full disk would be a SIGBUS in somebody else's
   program. It is opened by its path each time (core/moved.h), because the program may close any descriptor it finds. */
#pragma once

#include <stdint.h>

#include "core/fields.h"
#include "core/open_file.h"

/* A file of the experiment; `bytes` of it are really there. */
struct grown_file {
    uint64_t device, inode;
    uint64_t bytes;
    char path[PATH_BYTES];
};

/* Create it, empty, readable by its owner alone. 0 or the error's number. */
int file_create(struct grown_file *file, const char *directory, const char *name);

/* Grow it to `bytes` that are really there. 0 or the error's number: no room, RESERVE_REACHED, or no longer ours. */
int file_grow(struct grown_file *file, uint64_t bytes);

/* Map `bytes` at `offset`, growing the file so that the first `real` of them are there. NULL with errno set. */
void *file_map(struct grown_file *file, uint64_t offset, size_t bytes, size_t real);

/* Create it, and map its first `bytes`, of which `real` are there. NULL with errno set. */
void *file_create_mapped(struct grown_file *file, const char *directory, const char *name, size_t bytes, size_t real);

/* Map the head of another process's file, as long as that one is its owner's; NULL if it is not. */
struct file_head *file_map_head(const char *directory, const char *name, size_t bytes);

/* Write a head and what follows it at the end of the file. 0 or the error's number: no room, or no longer ours. */
int file_append(struct grown_file *file, const void *head, size_t head_bytes, const void *data, size_t bytes);

/* Write a head and its data over the bytes from `at` on, which is within the file. A reader meanwhile, or after a
   kill, finds zeros in place of the head until everything is written. 0 or the error number. */
int file_replace(struct grown_file *file, uint64_t at, const void *head, size_t head_bytes, const void *data,
                 size_t bytes);
