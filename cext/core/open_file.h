/* How the recorder opens files and makes directories: by path each time, above the descriptors that a program uses. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/visible.h"

struct stat;

enum { PATH_BYTES = 4096, HIGH_DESCRIPTOR = 700 };

/* So often a call that a signal interrupts is made again. One that always is interrupted is not waited for. */
enum { FILE_TRIES = 8 };

/* Files and directories made from now on are their owner's alone, or for the group to read as well. */
void files_begin(bool group_reads);

/* Make a directory with that mode, whatever the umask. 0 or the error number. */
VISIBLE int directory_create(const char *path);

/* Whether its file system has more free space than the reserve: 0, RESERVE_REACHED, or the error number. */
int directory_may_grow(const char *path);

/* Remove an experiment's directory with the files that one has. */
VISIBLE void directory_discard(const char *path);

/* Read a file as text that ends with a zero byte. False if there is none, with errno set; 0 if it is empty. */
bool file_read(const char *path, char *text, size_t bytes);

/* A descriptor of a file that is not ours, to read it; -1 with errno set. */
VISIBLE int file_open_to_read(const char *path);

/* --- for what writes the files of an experiment */

/* Open it as one of ours, which is never a link; -1 with errno set. The second form writes its path to `path`. */
VISIBLE int file_open(const char *path, int flags);
VISIBLE int file_open_in(char path[PATH_BYTES], const char *directory, const char *name, int flags);

/* Give a file of ours another name. 0 or the error number. */
int file_rename(const char *from, const char *to);

/* Make it readable for its owner alone, or for the group as well, whatever the umask. Fills `status`. 0 or the error
   number. */
int file_give_mode(int opened, struct stat *status);

/* May a file of this process be so long? Past the limit the kernel would send SIGXFSZ to the program. */
bool file_within_limit(uint64_t bytes);
