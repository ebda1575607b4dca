/* Reads perf records about chosen threads from the kernel's ring buffers, one for each processor, and returns them as notes in the
   order of time. Threads that a watched one starts are watched as well, and so are processes if `follows` is set.

   The kernel writes to the rings while we read. Records that are newer than the beginning of a look therefore wait for the next
   look: by then, everything older has been written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/open_file.h"
#include "kernel/tracepoints.h"

enum note_kind {
    NOTE_ENTER = 1, /* a system call starts: `number`, `argument` */
    NOTE_EXIT,      /* a system call ends: `number`, `result` */
    NOTE_IN,        /* the thread got a processor */
    NOTE_OUT,       /* the thread gave up its processor, to wait */
    NOTE_TAKEN,     /* another thread got its processor */
    NOTE_BEGINS,    /* the process `parent`, which may be `pid` itself, started the thread `tid` of the process `pid` */
    NOTE_ENDS,
    NOTE_BECOMES,   /* the process has executed another program: `name` */
    NOTE_MAPS,      /* the process has mapped code of a file: `path`, valid until the next note; at `argument`, from `number` on */
    NOTE_LOST,      /* records of any threads were lost: `result` of them (0: unknown), none before `since_ns` */
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
    const uint64_t *frame; /* the frames of the call, innermost first; valid until the next note */
    unsigned frames;
    uint64_t top; /* where a function without a frame would return to: a word of the stack, or of a register; 0 if unknown */
};

struct kernel_ring {
    int owner;  /* the file of its perf event, or -1 */
    void *page; /* the kernel's part, and the records behind it */
    uint64_t from, end; /* the part to read */
    uint64_t next_ns;   /* the time of the record at `from` */
    uint64_t last_ns;   /* the time of the record before it */
    bool was_full;      /* records may be lost; the kernel reports that only when it writes again, if it ever does */
};

struct rings {
    struct tracepoints tracepoints;
    struct kernel_ring *ring;
    unsigned processors;
    size_t bytes;
    int *files;
    size_t count, room;
    char path[PATH_BYTES];        /* of the last note that has one */
    uint64_t looked_ns, until_ns; /* when the last look began; notes up to `until_ns` are in order */
    uint64_t frame[FRAMES_AT_MOST]; /* of the last note that has any */
    bool follows; /* child processes are watched, too */
    bool some_were_full;
    bool has_stacks; /* calls come with the frames that led to them */
};

/* `bytes` is the size of a ring: a number of pages that is a power of two. Returns 0 or an errno. */
int rings_begin(struct rings *rings, struct tracepoints tracepoints, size_t bytes, bool follows, bool has_stacks);
void rings_end(struct rings *rings);

/* Watch a thread, from now on or from its exec on. Returns 0 or an errno. */
int rings_add(struct rings *rings, pid_t tid, bool at_exec);

/* Look for new records; the last look leaves none for later. */
void rings_look(struct rings *rings, bool is_last);

/* Get the next note; false if none is ready, or an older one may still come. */
bool rings_next(struct rings *rings, struct note *note);
