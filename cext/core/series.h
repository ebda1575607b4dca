/* Numbered records in a file of the experiment: call sites, strings, threads and the like. */
#pragma once

#include "core/file.h"

enum { SPACE_BYTES = 16 * 1024 };

/* A file of numbered records behind a head, written through one window at a time. Space within the first window is
   taken in smaller steps: most processes are short and have little to say. */
struct series {
    struct file_head *head; /* stays mapped */
    size_t window_bytes;
    char *window; /* `window_bytes` at `window_at` */
    uint64_t window_at;
    uint64_t end; /* where the next record goes */
    uint32_t next; /* its number */
    bool keep_windows; /* records are written to as long as the process lives */
    struct grown_file file;
};

/* Create the file with its head; its first record gets the number `first`. 0 or the error's number. */
int series_create(struct series *series, const char *directory, const struct data_type *type, uint32_t first);

/* Room for a record of `bytes`, which no window's edge crosses; zeros. NULL with errno set where there is no room. */
void *series_extend(struct series *series, size_t bytes);

/* Room for `count` records that follow one another in one window; returns the number of the first, or 0 with errno set. */
uint32_t series_records(struct series *series, uint32_t count, void **records);
