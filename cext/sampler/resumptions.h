/* Instructions of a sampled process at which generators run, as samples have shown: a loop, an await, or a call of C code resumes
   one. */
#pragma once

#include <stdint.h>

enum { RESUMPTIONS_AT_MOST = 256 };

/* Samples that saw a generator resumed there both before and after, and samples that saw none. */
struct resumption {
    uint64_t key;
    uint32_t resumed, alone;
};

struct resumptions {
    struct resumption known[RESUMPTIONS_AT_MOST];
};

/* An instruction may resume nothing, or do nothing else, or both resume generators and take time itself. The last is assumed until
   enough samples tell. */
enum resumption_sort { RESUMES_NOTHING, RESUMES_ONLY, RESUMES_AND_WORKS };

/* `key` is that of the code object and the place of the instruction. */
enum resumption_sort resumption_sort_of(const struct resumptions *resumptions, uint64_t key);
void resumption_note_generator(struct resumptions *resumptions, uint64_t key);
void resumption_note_alone(struct resumptions *resumptions, uint64_t key);
