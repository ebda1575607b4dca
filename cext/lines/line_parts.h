/* What the parts of line trace that know nothing of Python have of each other: stretches, tables, threads, time (lines.c). */
#pragma once

#include <sys/resource.h>

#include "lines/lines.h"

/* --- line_stretches.c: the times that line trace was on */

/* Once in a process. 0 or the error's number. */
int stretches_prepare(void);

/* Are the files this process's, and of the recording that is on? In a forked child they are its parent's. */
bool stretches_are_ours(void);
bool stretches_are_of_recording(void);

/* Begin the files, for the first stretch of a recording or of a forked child. 0 or the error's number. */
int stretches_begin(void);

/* 0 or the error's number. */
int stretch_begin(uint32_t target);

/* A `target` goes before that given when the stretch began. */
void stretch_end(uint32_t target);

/* The target of the stretch that is on, or that a parent was in; 0: none. */
uint32_t stretch_target(void);

/* The record of the stretch that is on; NULL in a rehearsal. */
struct line_trace *stretch_record(void);

/* How long a tick was until now. */
void stretch_note_ticks(struct line_trace *record);

/* --- line_speed.c */

/* Once in a while, see how fast the processor is: it takes some microseconds. */
void speed_look(struct line_trace *record, uint64_t now_ns);

static inline uint64_t timeval_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

/* --- line_tables.c: the functions, lines and loops */

int tables_begin(void);
bool lines_are_rehearsed(void);

/* --- line_threads.c: the threads, and their tasks as owners of tables */

/* Forget owners of a parent or of an earlier recording. Keep the threads: the calling one leaves what it entered during calibration
   when line trace is switched off, and the memory of ended ones is used again. */
void line_threads_begin(void);

/* The first of all; the others are behind it. */
struct line_thread *line_threads(void);

/* The thread and the task that an owner is. */
void find_owned(uint32_t owner, uint32_t *thread, uint32_t *task);

/* The time is known until now. */
void ask_clock(struct line_thread *thread);
void look_if_paused(struct line_thread *thread);

/* Of the calling thread, in the kernel. */
uint64_t kernel_ns(void);
