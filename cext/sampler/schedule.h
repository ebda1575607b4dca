/* What the kernel tells of a thread of another process: how long it ran and waited for a processor, and whether it runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Sums since the thread began. `slices` rises each time it gets a processor. */
struct schedule {
    uint64_t cpu_ns, run_delay_ns, slices;
};

/* A descriptor to read it by, or -1. */
int schedule_open(pid_t process, uint32_t tid);

/* Of a thread with a descriptor or, where that is -1, without; false when it has ended. */
bool schedule_read(int opened, pid_t process, uint32_t tid, struct schedule *found);

/* Does it run, or is it to run as soon as it gets a processor? */
bool schedule_runs(pid_t process, uint32_t tid);
