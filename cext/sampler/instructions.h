/* Where a thread of another process executes, noted by the kernel. It costs the thread an interrupt for each note. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct perf_event_mmap_page;

/* The notes of one thread; NULL if it has none. */
struct instructions {
    struct perf_event_mmap_page *notes;
};

/* The notes of the thread whose clock this is, a perf event that was opened for them. None if the kernel gives no memory. */
struct instructions instructions_begin(int clock);
void instructions_end(struct instructions instructions);

/* Note where the thread is when it has used an instant more of CPU time; then the clock can be read (poll). */
void instructions_order(struct instructions instructions, int clock);

/* The address of the first note since the last call, after which no more are made; false if there was none. */
bool instructions_take(struct instructions instructions, int clock, uint64_t *address);
