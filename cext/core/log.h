/* What the recorder writes into log.xml and map.xml, and beside them: mappings, and the text of code without a
   file. Any thread may call it; files are held against other processes one by one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/visible.h"

/* Write log.xml: `head`, the process, the closing tag; and an empty map.xml. Forked children begin theirs with the
   same head. 0 or the error's number. */
int log_describe(const char *head, size_t bytes);
int log_begin(void);

/* Have the log say that something happened; `attributes` as they stand in its element. 0 or the error's number. */
int log_event(const char *kind, const char *attributes);

/* The same of the founder's log, which speaks of the whole experiment. */
void log_founder_event(const char *kind, const char *attributes);

/* How a process ended is worth a longer wait for another writer. */
void log_ending(const char *kind, const char *attributes);

/* The recording ended before the process, and why. */
void log_stopped(const char *why);

/* Choose whether mappings are recorded; record them. */
void log_choose_objects(bool noted);
void log_objects(void);

/* Put entries, and the closing tag after them, into map.xml. 0 or the error's number. */
VISIBLE int recorder_map(const char *text, size_t bytes);

/* Have the log say something of this process, as long as it is recorded. */
VISIBLE void recorder_say(const char *kind, const char *attributes);

/* Warn, in XML, once in a recording: `warned` remembers that, and is 0 at first. */
VISIBLE void recorder_warn_once(uint32_t *warned, const char *text);

/* Note a directory that the program's own code was imported from. */
VISIBLE void recorder_note_root(const char *path);

/* Keep the text of code without a file; `name` is the number of its name. */
VISIBLE void recorder_note_text(uint32_t name, const char *text, size_t bytes);
