/* What the kernel tells of a thread of another process: how long it ran and waited for a processor, and whether it runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Sums since the thread began. `slices` rises each time it gets a processor. */
struct schedule {
    uint64_t cpu_ns, run_delay_ns, slices;
};

/* The files in which the kernel tells it; a descriptor each, or -1: then they are opened each time. */
struct schedule_files {
    int schedule, state;
    int clock; /* a perf event of the software sort; -1: none */
    uint64_t before_ns; /* CPU time that the thread had used when the clock began, as far as it is known */
    uint64_t ahead_ns;  /* by how much the last clock was ahead of `schedule`: the clock also counts time that the hypervisor took */
};

/* A file of the thread in /proc, as `stat`: its descriptor, or -1 with errno set. */
int open_of_thread(pid_t process, uint32_t tid, const char *name);

struct schedule_files schedule_open(pid_t process, uint32_t tid);
void schedule_close(struct schedule_files files);

/* Where the kernel allows it, there is a clock: it is exact, where `schedule` lags up to a tick behind as long as the thread runs.
   It costs the thread 1 to 2 us each time that it gets a processor. */
void schedule_begin_clock(struct schedule_files *files, uint32_t tid);

/* The thread has used `cpu_ns` by the clock, which ends now, and `scheduled_ns` by `schedule`. */
void schedule_end_clock(struct schedule_files *files, uint64_t cpu_ns, uint64_t scheduled_ns);

/* False when the thread has ended. */
bool schedule_read(struct schedule_files files, pid_t process, uint32_t tid, struct schedule *found);

/* CPU time of the thread until now: by the clock, or else by `schedule`, which says `scheduled_ns`; never less than that. */
uint64_t schedule_cpu(struct schedule_files *files, uint64_t scheduled_ns);

/* Does it run, or is it to run as soon as it gets a processor? Then `processor` is the number of the one that it runs on or waits for,
   or -1 if that is unknown. */
bool schedule_runs(struct schedule_files files, pid_t process, uint32_t tid, int *processor);
