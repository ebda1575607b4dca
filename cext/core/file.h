/* The files of an experiment as the recorder writes them: real space first, then a mapping, and no descriptor kept.
   A file grows by fallocate(2), never sparse: a write into a hole on a full disk would be a SIGBUS in somebody else's
   program. It is opened by its path each time, because the program may close any descriptor it finds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/fields.h"

enum { PATH_BYTES = 4096, SPACE_BYTES = 16 * 1024, HIGH_DESCRIPTOR = 700 };

/* A file of the experiment; `bytes` of it are really there. */
struct grown_file {
    char path[PATH_BYTES];
    uint64_t device, inode;
    uint64_t bytes;
};

/* Files and directories made from now on are their owner's alone, or for the group to read as well. */
void files_begin(bool group_reads);

/* Make a directory with that mode, whatever the umask. 0 or the error number. */
int directory_create(const char *path);

/* Whether its file system has more free space than the reserve: 0, RESERVE_REACHED, or the error number. */
int directory_may_grow(const char *path);

/* Remove an experiment's directory with the files that one has. */
void directory_discard(const char *path);

/* Create it, empty, readable by its owner alone. 0 or the error's number. */
int file_create(struct grown_file *file, const char *directory, const char *name);

/* Grow it to `bytes` that are really there. 0 or the error's number: no room, RESERVE_REACHED, or no longer ours. */
int file_grow(struct grown_file *file, uint64_t bytes);

/* Map `bytes` at `offset`, growing the file so that the first `real` of them are there. NULL with errno set. */
void *file_map(struct grown_file *file, uint64_t offset, size_t bytes, size_t real);

/* Map the head of another process's file, as long as that one is its owner's; NULL where it is not. */
struct file_head *file_map_head(const char *directory, const char *name, size_t bytes);

/* Write a head and what follows it at the end of the file. 0 or the error's number: no room, or no longer ours. */
int file_append(struct grown_file *file, const void *head, size_t head_bytes, const void *data, size_t bytes);

/* Write a head and its data over the bytes from `at` on, which is within the file. A reader meanwhile, or after a
   kill, finds zeros in place of the head until everything is written. 0 or the error number. */
int file_replace(struct grown_file *file, uint64_t at, const void *head, size_t head_bytes, const void *data,
                 size_t bytes);

/* A file of numbered records behind a head, written through one window at a time. Space within the first window is
   taken in smaller steps: most processes are short and have little to say. */
struct series {
    struct grown_file file;
    struct file_head *head; /* stays mapped */
    size_t window_bytes;
    char *window; /* `window_bytes` at `window_at` */
    uint64_t window_at;
    uint64_t end; /* where the next record goes */
    uint32_t next; /* its number */
    bool keep_windows; /* records are written to as long as the process lives */
};

/* Create the file with its head; its first record gets the number `first`. 0 or the error's number. */
int series_create(struct series *series, const char *directory, const struct data_type *type, uint32_t first);

/* Room for a record of `bytes`, which no window's edge crosses; zeros. NULL with errno set where there is no room. */
void *series_extend(struct series *series, size_t bytes);

/* Room for `count` records that follow one another in one window; gives the number of the first, or 0 with errno set. */
uint32_t series_records(struct series *series, uint32_t count, void **records);

/* Append `count` pieces to the file in one write; it is created if it does not exist, and stays below `most` bytes.
   0 or the error number. */
int file_add(const char *directory, const char *name, const struct iovec *pieces, int count, uint64_t most);

/* Have `name` be a copy of the file at `source`, up to `most` bytes. */
void file_copy(const char *directory, const char *name, const char *source, size_t most);

/* Write the whole file from `count` pieces: readers find the old content or all of the new, also after a kill. Room
   for `more` bytes is reserved after them, if possible, for messages on a full disk. 0 or the error number. */
int file_write(const char *directory, const char *name, const struct iovec *pieces, int count, size_t more);

/* Read a file of the kernel as text that ends with a zero byte. False if there is none. */
bool file_read(const char *path, char *text, size_t bytes);

/* A descriptor of a file that is not ours, to read it; -1 with errno set. */
int file_open_to_read(const char *path);

/* Hold a file of ours that others, in any process, hold briefly before they write; wait for them, but not longer
   than that takes. A descriptor to release it, or -1. */
int file_lock(const char *directory, const char *name);
void file_unlock(int opened);

/* Put `text`, which ends with the closing tag, in the place of the XML file's closing tag, in one write; the
   file is held. 0 or the error's number. */
int xml_append(const char *directory, const char *name, const char *closing_tag, const char *text, size_t bytes);
