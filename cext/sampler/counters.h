/* What the kernel counts of a thread besides its time: page faults and switches, as its files in /proc say, and the other events
   of the kernel and of the processor that a perf event can count. Nothing is done in the thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { COUNTERS_AT_MOST = 16 };

/* Where a counter is read. The config of COUNTER_FAULTS and of COUNTER_SWITCHES is a sum of parts; that of the others is the
   kernel's (perf_event_open(2)). */
enum counter_source { COUNTER_FAULTS, COUNTER_SWITCHES, COUNTER_SOFTWARE, COUNTER_HARDWARE };
enum counter_parts { MINOR_FAULTS = 1, MAJOR_FAULTS = 2, VOLUNTARY_SWITCHES = 1, INVOLUNTARY_SWITCHES = 2 };

struct counter {
    uint64_t config;
    uint32_t source;
};

/* The counters that were chosen. */
struct counters {
    unsigned count;
    struct counter chosen[COUNTERS_AT_MOST];
};

/* Those of one thread. The files are -1 where there is none. `errors` says why a counter is not read; ESRCH: the thread
   has ended already. */
struct thread_counters {
    int faults, switches, events[COUNTERS_AT_MOST];
    int errors[COUNTERS_AT_MOST];
    bool in_user_mode_only[COUNTERS_AT_MOST]; /* the kernel permits no more */
    uint64_t last[COUNTERS_AT_MOST];
    uint64_t pauses; /* of recording, before `last` was read */
};

/* Open the files, and count from now on. */
void counters_open(struct thread_counters *thread, const struct counters *counters, pid_t process, uint32_t tid, uint64_t pauses);
void counters_close(struct thread_counters *thread);

/* Add what was counted since the last time, unless recording was paused in between. An event can still be read when its thread
   has ended; the files in /proc cannot. */
void counters_add(struct thread_counters *thread, const struct counters *counters, uint64_t pauses,
                  uint64_t counts[COUNTERS_AT_MOST]);

/* May this counter be read of the calling thread? 0 or the error's number. */
int counters_try(struct counter counter, bool *in_user_mode_only);
