/* What the kernel tells of the system calls of chosen threads, in the order of time: from the rings of perf events, one for each
   processor. The threads and processes that a watched one starts are watched as well.

   The kernel writes into a ring while we read. What is at most as old as the last look is therefore left for the next one: by
   then everything older has been written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/open_file.h"

enum note_kind {
    NOTE_ENTER = 1, /* a system call begins: `number`, `argument` */
    NOTE_EXIT,      /* one has ended: `number`, `result` */
    NOTE_IN,        /* the thread got a processor */
    NOTE_OUT,       /* it has none any longer, because it waits */
    NOTE_TAKEN,     /* the same, because another one got it */
    NOTE_BEGINS,    /* the thread `tid` of the process `pid` was begun by `parent`, another one's or its own */
    NOTE_ENDS,
    NOTE_BECOMES,   /* the process has become another program: `name` */
    NOTE_MAPS,      /* it has mapped a file with code: `path`, until the next note, at `argument`, from `number` on */
    NOTE_LOST,      /* so many notes were lost, of anybody: `result`, 0 if it is not known how many; `since_ns`: none is older */
};

enum { NAME_BYTES = 16, ARGUMENTS = 2, FRAMES_AT_MOST = 48 };

struct note {
    enum note_kind kind;
    uint32_t pid, tid, parent;
    uint64_t time_ns, since_ns;
    int64_t number, result;
    uint64_t argument[ARGUMENTS];
    char name[NAME_BYTES];
    const char *path;
    const uint64_t *frame; /* where the call comes from, the innermost first; until the next note */
    unsigned frames;
    uint64_t top; /* where a function without a frame would return to: a word of the stack, or of a register; 0 if unknown */
};

/* The numbers of the kernel's tracepoints. */
struct tracepoints {
    uint64_t enter, exit;
};

struct kernel_ring {
    int owner;  /* the event that it is of, or -1 */
    void *page; /* the kernel's part, and the records behind it */
    uint64_t from, end; /* what there is to read */
    uint64_t next_ns;   /* when the record at `from` was made */
    uint64_t last_ns;   /* and the one before it */
    bool was_full;      /* the kernel had no room for more; it says so only when it writes again, which may be never */
};

struct rings {
    struct tracepoints tracepoints;
    struct kernel_ring *ring;
    unsigned processors;
    size_t bytes;
    int *files;
    size_t count, room;
    char path[PATH_BYTES];        /* of the last note that has one */
    uint64_t looked_ns, until_ns; /* when the last look began; up to when notes are in order */
    uint64_t frame[FRAMES_AT_MOST]; /* of the last note that has any */
    bool follows; /* processes that a watched one starts */
    bool some_were_full;
    bool has_stacks; /* calls come with the frames that led to them */
};

/* 0 or the error's number. `bytes` is the size of a ring, a power of two of pages. */
int rings_begin(struct rings *rings, struct tracepoints tracepoints, size_t bytes, bool follows, bool has_stacks);
void rings_end(struct rings *rings);

/* Watch a thread, from now on or from when it becomes another program. 0 or the error's number. */
int rings_add(struct rings *rings, pid_t tid, bool at_exec);

/* Look for what has been written; after a last look there is nothing to wait for. */
void rings_look(struct rings *rings, bool is_last);

/* The next note; false if there is none that is certainly the next. */
bool rings_next(struct rings *rings, struct note *note);
