/* A sampled process: how to reach it, what it has said about its interpreter, and its threads. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/interpreter_layout.h"
#include "sampler/codes.h"
#include "sampler/counters.h"
#include "sampler/instructions.h"
#include "sampler/met_functions.h"
#include "sampler/numbers.h"
#include "sampler/objects.h"
#include "sampler/resumptions.h"
#include "sampler/schedule.h"
#include "sampler/stack_memory.h"
#include "sampler/switches.h"
#include "sampler/tables.h"
#include "sampler/waking.h"

/* The kernel's figures of a thread at a sample, and how long it had been ready to run without a processor. */
struct moment {
    uint64_t time_ns, cpu_ns, run_delay_ns, off_ns;
};

/* The interpreters of the process, as they were seen last. */
enum { INTERPRETERS_AT_MOST = 64 };
struct interpreters {
    uint64_t address[INTERPRETERS_AT_MOST], first_thread[INTERPRETERS_AT_MOST];
    unsigned count;
};

/* A sample that is not written yet, and what was counted up to it since the one before. */
struct taken {
    struct sample sample;
    uint64_t counts[COUNTERS_AT_MOST];
};

/* Samples of a thread, later than the one that is pending, whose native function may yet be told (native_code.h). */
enum { ASKED_AT_MOST = 32 };
struct asked {
    struct taken taken[ASKED_AT_MOST];
    unsigned count;
    uint64_t mark; /* of the Python frames of all of them; 0: they have been told */
};

/* A sample for which we do not know whether its thread had a processor, and what we know of the stacks of such samples. */
enum { UNMOVED_AT_MOST = 16 };
struct unmoved {
    uint32_t stack;
    int ran; /* how much more often a thread in it surely ran than surely waited, while nothing was seen to change */
};
struct doubt {
    struct unmoved unmoved[UNMOVED_AT_MOST];
    bool is_open;
    struct taken taken;
};

/* What a thread was found to run in the wait for the interpreter lock, by the number of the wait; 0: it was in none. */
struct waiting {
    uint32_t call, stack, task;
    uint64_t mark;
};

/* Frames of a thread as they were read last, from the inside out: the innermost ones, and the outermost one. */
enum { LAST_FRAMES_AT_MOST = 32 };
struct last_frames {
    uint64_t address[LAST_FRAMES_AT_MOST];
    unsigned count;
    uint64_t c_stack; /* an address on its C stack, of the function that runs the innermost one; 0: unknown */
};

/* A thread: its last state, and the sample that is not written yet because the next may be equal. */
struct sampled_thread {
    uint64_t address; /* its state in the interpreter */
    struct stack_place stack;
    struct last_frames last_frames;
    uint32_t tid;
    struct schedule_files files;
    struct instructions instructions;
    struct thread_counters counters;
    uint32_t record;  /* its number in threads, 0 if it has none yet */
    struct schedule schedule;
    struct moment last;
    struct switches switches;
    double waits_due;   /* samples still to be counted as waiting for a processor, less those that were counted too early (on_processor.c) */
    unsigned uncounted; /* samples since the kernel counted anything, and what it had counted then */
    struct schedule counted;
    uint64_t counted_ns; /* and when that was seen */
    struct waiting waiting;
    uint32_t waited, rests; /* samples in a row in which it only waited; rounds in which it is skipped */
    bool is_seen, has_frame; /* listed just now; and it ran Python code */
    bool has_first, is_sampled; /* sampled once; more than once */
    bool is_refused; /* the kernel notes nothing of it */
    struct taken pending;
    struct asked asked;
    struct doubt doubt;
};

/* The native functions that were met. */
struct native_code {
    struct objects objects;
    struct met_functions functions;
};

/* The record of its memory that was written last; of the next one, the thread that used the most CPU time in this round. */
struct sampled_memory {
    int file;
    uint64_t most_cpu_ns;
    struct memory pending;
};

struct sampled_process {
    pid_t pid;
    pid_t reached; /* a thread of it that is alive: of one that has ended the kernel tells nothing more, though it may have been the first */
    int handle; /* pidfd: readable when it has ended */
    int threads_file;
    struct interpreter_layout layout;
    struct tables tables;
    struct codes codes;
    struct resumptions resumptions;
    struct numbers task_names; /* by coroutine */
    struct sampled_memory memory;
    struct native_code native;
    const struct waking *waking; /* the sampler's, as are the counters, and how often it saw a pause begin */
    const struct counters *counters;
    uint64_t pauses;
    uint32_t not_counted; /* a bit for each counter of which that was written */
    struct interpreters interpreters;
    int environment; /* its /proc/PID/environ, which reads as empty after an exec; -1 if it was empty from the start */
    struct sampled_thread *threads;
    uint32_t thread_count, thread_room;
    uint64_t unnumbered; /* while threads are listed: the last state whose number is of no thread of this process; 0 if none */
    uint64_t chosen_ns, round_ns; /* when the sampler wanted to wake for this round, and when it did */
    bool is_at_tick;     /* it woke at a tick of the kernel's */
    uint64_t heads_seen; /* a key of the first threads of its interpreters, or how many threads: another when one comes */
    uint32_t until_listed, failures;
    bool has_doubts;     /* of samples of its threads */
    bool is_unsettled; /* the list: a thread has several states and goes from one to another, or one has no thread yet */
    bool was_recorded, is_over; /* its recording has ended, and not the process */
    uint32_t rounds, halvings; /* how often the rate was halved */
    char *libraries;  /* directories of code that is not its own, a line each */
};

/* Whether it is Python. Of another program the threads and the native functions are sampled. */
static inline bool has_interpreter(const struct sampled_process *process)
{
    return process->layout.runtime != 0;
}

/* Reach the process, which has said that its interpreter is laid out so, and make the files of its samples in `directory`. 0 or
   the error's number: EPERM or EACCES where it may not be read, which the files say then, EEXIST where it was sampled before. */
int process_begin(struct sampled_process **begun, pid_t pid, const char *directory, const struct interpreter_layout *layout,
                  const char *libraries);

/* Write what waits to be written, and give back all that it has. */
void process_forget(struct sampled_process *process);
