/* Where a thread of another process executes, noted by the kernel. It costs the thread an interrupt for each note. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct perf_event_mmap_page;

/* After how much more of the thread's CPU time a note is made; after 0.1 ms at least, if the kernel makes none inside of it. */
enum note_after {
    AFTER_AN_INSTANT = 10000, /* ns; the kernel takes no shorter one */
    AFTER_RESUMING = 50000,   /* a thread without a processor is then past the system call in which it lost it */
    AFTER_A_WHILE = 250000,
};

/* The notes of one thread: a perf event, and what the kernel writes; NULL if it has none. */
struct instructions {
    int event;
    enum note_after after;
    bool is_ordered, sees_kernel; /* the latter: it is made in the kernel, too */
    struct perf_event_mmap_page *notes;
};

/* None if the kernel permits none. Only so many threads may have some: whether one more may. */
struct instructions instructions_begin(uint32_t tid);
bool instructions_are_left(void);
void instructions_end(struct instructions *instructions);

/* May a thread have some? 0 or the error's number. */
int instructions_try(uint32_t tid);

/* Make one note of where the thread is outside of the kernel, after so much more CPU time; then the event can be read (poll).
   If the kernel makes none of threads inside of it, it looks again after as long, and what is more often outside is found more
   often. */
void instructions_order(struct instructions *instructions, enum note_after after);

/* The address of the note that was ordered; false if it has not been made. */
bool instructions_take(struct instructions *instructions, uint64_t *address);
