/* The watched processes and their threads: turns notes (kernel/rings.h) into events.

   A thread's CPU time is the time between being switched in and out, and the cost of the switch itself. A thread in an unknown
   state counts as running until a note says otherwise. If records were lost, the kernel's own count of the CPU time is used. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/code_map.h"
#include "kernel/kernel_files.h"
#include "kernel/known_descriptors.h"
#include "kernel/note_cost.h"
#include "kernel/rings.h"
#include "sampler/numbers.h"

enum thread_state { UNSURE, RUNS, READY, WAITS };

enum { STATUS_UNKNOWN = -1, NO_CALL = -1 };

/* The kernel's own counts of a thread, read between `from_ns` and `until_ns`. */
struct kernel_counts {
    uint64_t from_ns, until_ns, cpu_ns, run_delay_ns;
    uint64_t slices; /* how often the thread got a processor */
};

struct watched_thread {
    struct watched_thread *next;
    uint32_t tid, number;
    struct watched_process *process;
    enum thread_state state;
    uint64_t last_ns, cpu_ns;
    struct kernel_counts before; /* when watching started */
    struct kernel_counts asked;  /* if `is_asked`: compare with ours at the next note after it */
    bool is_asked, asked_after_loss;
    bool is_before_estimated; /* `before` is not exact, as the thread ran */
    bool has_lost;            /* notes were lost since the last comparison */
    uint64_t slices;          /* how often it got a processor, by the notes */
    uint32_t switches;        /* switches to it since the last comparison */
    int64_t switch_ns;        /* average cost that the kernel charges for one */
    int64_t owed_ns;          /* CPU time still to add (or, below 0, to subtract) to match the kernel's count */
    uint64_t own_in_call_ns;  /* the recording's share of switches in the call in progress */
    int64_t in_call; /* the system call that it is in, or -1 */
    int64_t found_in; /* the one that it was in when it was found, at `found_ns`, or -1; until its first note */
    uint64_t found_ns;
    uint64_t gone_ns; /* when it was found to have ended after notes were lost; 0 otherwise */
    bool is_cut;      /* it was found so, and there has been no note since */
    bool is_recorded; /* it is of a kind that is */
    bool is_outside;  /* the end of its last call was seen, and no note has been lost since */
    uint64_t argument[ARGUMENTS]; /* of it */
    uint32_t calls;
    struct held_block *block;
    struct thread_record record;
};

struct watched_process {
    struct watched_process *next;
    uint32_t pid, parent;
    uint32_t numbers; /* of its threads so far */
    uint32_t stack;   /* that of its calls: the program that it is */
    bool is_placed, has_ended;
    int status; /* as it said itself when it ended, or STATUS_UNKNOWN */
    uint64_t begun_ns, end_ns, cpu_ns, delay_ns;
    bool has_lost; /* notes of anybody were lost while it ran */
    uint64_t lost; /* as many as is known */
    char name[NAME_BYTES]; /* of the program that it became */
    char *path;            /* of that, once it has mapped it; NULL until then */
    bool is_new;           /* the next file with code that it maps is the program */
    bool has_other_numbers; /* of system calls: a program of 32 bits */
    struct watched_thread *threads; /* that live */
    struct kernel_files files;
    struct kernel_texts texts;
    struct known_descriptors descriptors;
    struct kernel_stacks stacks;
    struct code_map code; /* empty where no frames are asked for */
};

/* What the caller has to do before it takes the next note. */
enum wanted {
    NOTHING,
    PLACE,   /* create the files of a new process */
    PROGRAM, /* a process has executed another program */
    END,     /* a process has ended */
};

struct watched {
    uint32_t kinds; /* that are recorded: a bit for each */
    struct note_costs costs;
    bool has_stacks;
    struct watched_process *processes;
    struct numbers threads; /* their addresses in `thread`, from 1 on, by tid */
    struct watched_thread **thread;
    uint64_t asked; /* number of threads when the kernel was last asked about them */
    uint32_t room, used;
};

/* Process a note. Returns what the caller has to do, and for which `process`. */
enum wanted watched_take(struct watched *watched, const struct note *note, struct watched_process **process);

struct watched_process *watched_process_of(const struct watched *watched, uint32_t pid);

/* A process is watched from now on, with this thread; NULL if there is no room. */
struct watched_process *watched_begin(struct watched *watched, uint32_t pid, uint32_t parent, uint64_t time_ns);
struct watched_thread *watched_thread_begin(struct watched *watched, struct watched_process *process, uint32_t tid,
                                            enum thread_state state, uint64_t time_ns);

/* The process already ran this program, the file `path`, when watching started. */
void watched_program_was_there(struct watched_process *process, const char *path);

/* The thread ran before it began to be watched. */
void watched_thread_was_there(struct watched_thread *thread);

/* The thread was already waiting in the call that this note describes when watching started. */
void watched_thread_found(struct watched_thread *thread, const struct note *note);

/* All notes up to this instant were taken: end the threads that had ended by then and whose last notes were lost. */
void watched_end_gone(struct watched *watched, uint64_t until_ns);

/* Read the kernel's counts of the threads. */
void watched_ask_kernel(struct watched *watched, uint64_t now_ns);

/* Write what is not written yet. */
void watched_write(struct watched *watched);

/* The process is no longer watched: it has ended, or watching ends at `now_ns`. */
void watched_leave(struct watched *watched, struct watched_process *process, uint64_t now_ns);

/* Forget it and what is known of it. */
void watched_forget(struct watched *watched, struct watched_process *process);
