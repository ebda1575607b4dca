/* Where a thread of another process executes, noted by the kernel. It costs the thread an interrupt for each note. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct perf_event_mmap_page;

/* The notes of one thread: a perf event, and what the kernel writes; NULL if it has none. */
struct instructions {
    int event;
    bool is_ordered, is_patient, sees_kernel; /* the latter: it is made in the kernel, too */
    struct perf_event_mmap_page *notes;
};

/* None if the kernel permits none. Only so many threads may have some: whether one more may. */
struct instructions instructions_begin(uint32_t tid);
bool instructions_are_left(void);
void instructions_end(struct instructions *instructions);

/* May a thread have some? 0 or the error's number. */
int instructions_try(uint32_t tid);

/* Make one note of where the thread is outside of the kernel, when it has used an instant more of CPU time, or a while if one is
   patient; then the event can be read (poll). If the kernel makes none of threads inside of it, it looks again after as long: that takes
   some microseconds each time, and what is more often outside is found more often. */
void instructions_order(struct instructions *instructions, bool is_patient);

/* The address of the note that was ordered; false if it has not been made. */
bool instructions_take(struct instructions *instructions, uint64_t *address);
