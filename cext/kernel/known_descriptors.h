/* What the descriptors of a watched process refer to: their kinds, and their paths as details.

   The kernel's view lags: when it looks, the process may have closed the descriptor, and opened another one under the same
   number. A path that was looked up after that is not kept; whoever has it as a detail gets `<closed at once>` in its place. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/kernel_texts.h"
#include "kinds.h"

struct known_descriptor {
    uint8_t is_known, kind;
    uint32_t detail;    /* a number in the texts, or 0 */
    uint64_t looked_ns; /* when what it refers to was looked up; 0: it was not */
};

struct known_descriptors {
    struct known_descriptor *known;
    size_t room;
};

/* It refers to something new, probably of this kind; KIND_COUNT if nothing is known of it. */
void descriptors_open(struct known_descriptors *descriptors, int64_t number, enum kind kind);

/* It was given up by a call that began at `time_ns`. */
void descriptors_close(struct known_descriptors *descriptors, struct kernel_texts *texts, int64_t number, uint64_t time_ns);
void descriptors_close_range(struct known_descriptors *descriptors, struct kernel_texts *texts, uint64_t from, uint64_t to,
                             uint64_t time_ns);

/* What it refers to. The kernel is asked of the thread: of a process whose first thread has ended it tells nothing. */
struct known_descriptor descriptor_of(struct known_descriptors *descriptors, struct kernel_texts *texts, pid_t thread, int64_t number);

/* A forked child has those of its parent; their paths are looked up again. */
void descriptors_copy(struct known_descriptors *to, const struct known_descriptors *from);
void descriptors_free(struct known_descriptors *descriptors);
