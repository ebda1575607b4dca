/* What the descriptors of a watched process refer to: their kinds, and their paths as details.

   We look paths up late. By then, the process may have closed the descriptor and opened another one with the same number. Once we
   read of that close, we replace the path by `<closed at once>` in all calls that have it as a detail. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/kernel_texts.h"
#include "kinds.h"

struct known_descriptor {
    uint8_t is_known, kind;
    uint32_t detail;    /* a number in the texts, or 0 */
    uint64_t looked_ns; /* when the path was looked up; 0: never */
};

struct known_descriptors {
    struct known_descriptor *known;
    size_t room;
};

/* The descriptor refers to something new, probably of this kind; KIND_COUNT if its kind is unknown. */
void descriptors_open(struct known_descriptors *descriptors, int64_t number, enum kind kind);

/* A call that began at `time_ns` closed the descriptor. */
void descriptors_close(struct known_descriptors *descriptors, struct kernel_texts *texts, int64_t number, uint64_t time_ns);
void descriptors_close_range(struct known_descriptors *descriptors, struct kernel_texts *texts, uint64_t from, uint64_t to,
                             uint64_t time_ns);

/* What the descriptor refers to. We look in /proc of the thread: that of a process is empty once its first thread has ended. */
struct known_descriptor descriptor_of(struct known_descriptors *descriptors, struct kernel_texts *texts, pid_t thread, int64_t number);

/* A forked child has the descriptors of its parent; their paths are looked up again. */
void descriptors_copy(struct known_descriptors *to, const struct known_descriptors *from);
void descriptors_free(struct known_descriptors *descriptors);
