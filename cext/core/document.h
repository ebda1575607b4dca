/* The documents of an experiment: files that are written whole, or added to, in one write. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "core/visible.h"

/* Append `count` pieces to the file in one write; it is created if it does not exist, and stays below `most` bytes.
   0 or the error number. */
VISIBLE int file_add(const char *directory, const char *name, const struct iovec *pieces, int count, uint64_t most);

/* Have `name` be a copy of the file at `source`, up to `most` bytes. */
void file_copy(const char *directory, const char *name, const char *source, size_t most);

/* Write the whole file from `count` pieces: readers find the old content or all of the new, also after a kill. Room
   for `more` bytes is reserved after them, if possible, for messages on a full disk. 0 or the error number. */
int file_write(const char *directory, const char *name, const struct iovec *pieces, int count, size_t more);

/* Hold a file of ours that others, in any process, hold briefly before they write; wait for them, but not longer
   than that takes. A descriptor to release it, or -1. */
int file_lock(const char *directory, const char *name);
void file_unlock(int opened);

/* Put `text`, which ends with the closing tag, in the place of the XML file's closing tag, in one write; the
   file is held. 0 or the error's number. */
int xml_append(const char *directory, const char *name, const char *closing_tag, const char *text, size_t bytes);
