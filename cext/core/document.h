/* The documents of an experiment: files that are written whole, or added to, in one write. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Put `count` pieces behind what is in the file, in one write; it is made where there is none, and stays below `most`
   bytes. 0 or the error's number. */
int file_add(const char *directory, const char *name, const struct iovec *pieces, int count, uint64_t most);

/* Have `name` be a copy of the file at `source`, up to `most` bytes. */
void file_copy(const char *directory, const char *name, const char *source, size_t most);

/* Write the file whole, from `count` pieces: whoever looks finds what was there before, or all of it, also after a kill in
   between. Room for `more` bytes is kept behind them, where that can be
   had, for what must be said on a full disk. 0 or the error's number. */
int file_write(const char *directory, const char *name, const struct iovec *pieces, int count, size_t more);

/* Hold a file of ours that others, in any process, hold for a moment before they write; they are waited for, though not
   longer than that takes. A descriptor to let go of it by, or -1. */
int file_lock(const char *directory, const char *name);
void file_unlock(int opened);

/* Put `text`, which ends with the closing tag, in the place of the XML file's closing tag, in one write; the
   file is held. 0 or the error's number. */
int xml_append(const char *directory, const char *name, const char *closing_tag, const char *text, size_t bytes);
