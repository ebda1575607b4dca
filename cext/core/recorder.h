/* The recorder: a recording from its beginning to its end. core/spans.h has what happens at each call. */
#pragma once

#include "core/children.h"
#include "core/control.h"
#include "core/fields.h"
#include "core/fork.h"
#include "core/interning.h"
#include "core/levels.h"
#include "core/log.h"
#include "core/recording.h"
#include "core/room.h"
#include "core/settings.h"
#include "core/spans.h"
#include "core/usage.h"

/* Begin recording into a directory that was made for it. 0 or the error number. */
VISIBLE int recorder_begin(const struct recorder_settings *settings);

/* Write log.xml: `head`, the process, the closing tag; and an empty map.xml. Forked children begin theirs with the
   same head. 0 or the error's number. */
VISIBLE int recorder_describe(const char *head, size_t bytes);

/* Create the files of a process with these first numbers, and let the calling thread record. 0 or the error number. */
int recorder_begin_files(struct first_numbers first);

/* Where this process is recorded; NULL if it is not, or no longer. */
VISIBLE const char *recorder_directory(void);

/* Create one of its files, to which records are written as long as the process lives. 0 or the error number. */
int recorder_series(struct series *series, enum data_number type);

/* End of the recording, and of the process with `status` if that is known (>= 0). */
VISIBLE void recorder_end(int status);

/* End the recording at a request from outside; the process continues. No file stays mapped. */
VISIBLE void recorder_detach(void);

/* What the calling thread calls from now on is not recorded. */
VISIBLE void recorder_hush(void);

/* Record an attempt to start a process, of the calling thread; NULL if nothing can be recorded. */
VISIBLE struct child *recorder_starts(const struct child *attempt);

/* Count a call of a thread that cannot record. */
VISIBLE void recorder_lose(void);
