/* Samples the Python code of other processes at random instants, at a given rate: without a signal, a thread or a
   frame in them. For one thread of the monitor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/interpreter_layout.h"
#include "sampler/counters.h"

struct sampler;

enum { AT_EACH_RATE_BYTES = 8 * 1024 * 1024 };

/* For the processes of the experiment in `founder`, `rate` times a second; half as often after each `at_each_rate_bytes` of
   samples of a process. The counters are read with each sample. NULL with errno set. */
struct sampler *sampler_begin(const char *founder, double rate, uint64_t at_each_rate_bytes, const struct counters *counters);

/* Sample the process from now on, which records into `directory` and has described its layout; `libraries` are the
   directories of code that is not its own, a line each; then its memory limit, 0 if unknown. A process with the number
   of an earlier one is the same process after an exec. 0 or the error number: EPERM if it may not be read, EEXIST if it
   was sampled before. */
int sampler_add(struct sampler *sampler, pid_t pid, const char *directory, const struct interpreter_layout *layout,
                const char *libraries, uint64_t memory_limit_bytes);

/* Note that the process that records into `directory` is not sampled, and why, unless it was sampled before. 0 or the error
   number. */
int sampler_refuse(const char *directory, int why);

/* Sample for this long, or until the experiment's directory changes, or somebody calls `sampler_stop`. */
void sampler_run(struct sampler *sampler, uint64_t for_ns);

/* May the process be read, at this address? 0 or the error's number; and may it have an exact clock? */
int sampler_try(pid_t pid, uint64_t address, bool *has_clock);

/* Any thread may say so. */
void sampler_stop(struct sampler *sampler);

/* Write what is not written yet, and forget everything. */
void sampler_end(struct sampler *sampler);
