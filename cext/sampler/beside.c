#include "sampler/beside.h"

enum { KEPT_FOR = 16 /* samples: each piece that is read takes time, in which what is read changes */ };

static void add(struct beside *beside, struct beside_piece piece)
{
    if (beside->count < BESIDE_AT_MOST && piece.bytes <= BESIDE_BYTES_AT_MOST)
        beside->piece[beside->count++] = piece;
}

void beside_add(struct beside *beside, uint64_t address, size_t bytes)
{
    add(beside, (struct beside_piece){.address = address, .bytes = bytes});
}

void beside_add_frame(struct beside *beside, struct beside_piece frame)
{
    add(beside, frame);
    beside->frames = beside->count;
}

static unsigned find(const struct beside *beside, uint64_t address)
{
    unsigned index = 0;
    while (index < beside->count && beside->piece[index].address != address)
        index++;
    return index;
}

uint64_t beside_around(const struct beside *beside, uint64_t address)
{
    unsigned index = find(beside, address);
    return index < beside->count ? beside->piece[index].around : 0;
}

bool beside_has_generator(const struct beside *beside)
{
    unsigned index = 0;
    while (index < beside->frames && !beside->piece[index].of_generator)
        index++;
    return index < beside->frames;
}

static void keep_frame(struct beside *kept, struct beside_piece frame)
{
    if (frame.age <= KEPT_FOR && find(kept, frame.address) == kept->count)
        beside_add_frame(kept, frame);
}

static struct beside_piece older(struct beside_piece frame)
{
    frame.age++;
    return frame;
}

void beside_keep(struct beside *last, const struct beside *now)
{
    struct beside kept = {.count = 0};
    if (last->has_innermost && !now->has_innermost)
        keep_frame(&kept, older(last->piece[0]));
    kept.has_innermost = now->has_innermost || kept.count;
    for (unsigned index = 0; index < now->frames; index++)
        keep_frame(&kept, now->piece[index]);
    for (unsigned index = 0; index < last->frames && kept.count < FRAMES_KEPT; index++)
        keep_frame(&kept, older(last->piece[index]));
    for (unsigned index = now->frames; index < now->count; index++)
        add(&kept, now->piece[index]);
    *last = kept;
}
