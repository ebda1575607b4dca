/* Samples the Python code of other processes at random instants, so many times a second: without a signal, a thread or a
   frame in them. For one thread of the monitor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/interpreter_layout.h"

struct sampler;

enum { AT_EACH_RATE_BYTES = 8 * 1024 * 1024 };

/* For the processes of the experiment in `founder`, `rate` times a second; half as often after each `at_each_rate_bytes` of
   samples of a process. NULL with errno set. */
struct sampler *sampler_begin(const char *founder, double rate, uint64_t at_each_rate_bytes);

/* Sample the process from now on, which records into `directory` and has said that it is laid out so; `libraries` are the
   directories of code that is not its own, a line each; it may have so much memory, or 0 where that is not known. Another one of the same number is the same process before it became
   another program. 0 or the error's number: EPERM where it may not be read, EEXIST where it was sampled before. */
int sampler_add(struct sampler *sampler, pid_t pid, const char *directory, const struct interpreter_layout *layout,
                const char *libraries, uint64_t memory_limit_bytes);

/* Sample for so long, or until the experiment's directory has changed, or somebody says `sampler_stop`. */
void sampler_run(struct sampler *sampler, uint64_t for_ns);

/* May the process be read, at this address? 0 or the error's number; and may it have an exact clock? */
int sampler_try(pid_t pid, uint64_t address, bool *has_clock);

/* Any thread may say so. */
void sampler_stop(struct sampler *sampler);

/* Write what is not written yet, and forget all. */
void sampler_end(struct sampler *sampler);
