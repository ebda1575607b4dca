/* Memory that a stack needs beyond the chunk of its frames. It is noted, so that the next sample reads everything in one call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BESIDE_AT_MOST = 16, BESIDE_BYTES_AT_MOST = 512, FRAMES_KEPT = 6 };

struct beside_piece {
    uint64_t address;
    size_t bytes;
    uint64_t around;   /* of a frame on the C stack: the frame around it; else 0 */
    bool of_generator; /* it is the frame of one */
    unsigned age;      /* of a frame: samples since a stack needed it */
};

/* First the frames of generators, those around them, and those on the C stack; then heads of code objects. */
struct beside {
    struct beside_piece piece[BESIDE_AT_MOST];
    unsigned count, frames;
    bool has_innermost; /* the first of these frames was the innermost one of its stack */
};

/* Note what may be read by the same call the next time; what there is no room for is left out. Frames are noted before all else. */
void beside_add_frame(struct beside *beside, struct beside_piece frame);
void beside_add(struct beside *beside, uint64_t address, size_t bytes);

/* Also keep a few frames of the last times, as they may be there again. The innermost one comes first, so that it is read right
   after the chunk. */
void beside_keep(struct beside *last, const struct beside *now);

bool beside_has_generator(const struct beside *beside);

/* The frame that was around the one on the C stack at the address when that was noted, or 0. */
uint64_t beside_around(const struct beside *beside, uint64_t address);
