#include "sampler/pieces.h"

#include <string.h>

void pieces_begin(struct pieces *pieces)
{
    pieces->count = pieces->closed = pieces->reads = pieces->joined = 0;
}

void pieces_add(struct pieces *pieces, uint64_t address, void *into, size_t bytes)
{
    bool is_possible = address && bytes <= UINT64_MAX - address;
    if (is_possible && pieces->count < WANTED_AT_MOST)
        pieces->wanted[pieces->count++] = (struct remote_piece){address, into, bytes};
    else
        memset(into, 0, bytes);
}

/* Move the wanted piece to the place, before those that are there. */
static void move(struct pieces *pieces, unsigned from, unsigned to)
{
    struct remote_piece moved = pieces->wanted[from];
    memmove(&pieces->wanted[to + 1], &pieces->wanted[to], (from - to) * sizeof moved);
    pieces->wanted[to] = moved;
}

/* Those that are close to the first wanted piece that is open, with that one; they are put next to it. */
static struct remote_piece join(struct pieces *pieces, unsigned *end)
{
    const struct remote_piece *first = &pieces->wanted[pieces->closed];
    uint64_t begin = first->address, last = begin + first->bytes;
    *end = pieces->closed + 1;
    for (unsigned index = *end; index < pieces->count && pieces->joined < JOINED_AT_MOST; index++) {
        const struct remote_piece *other = &pieces->wanted[index];
        uint64_t other_end = other->address + other->bytes;
        uint64_t from = other->address < begin ? other->address : begin, to = other_end > last ? other_end : last;
        if (to - from > JOINED_BYTES)
            continue;
        begin = from;
        last = to;
        move(pieces, index, (*end)++);
    }
    if (*end == pieces->closed + 1)
        return pieces->wanted[pieces->closed];
    return (struct remote_piece){begin, pieces->memory[pieces->joined++], last - begin};
}

unsigned pieces_close(struct pieces *pieces)
{
    while (pieces->closed < pieces->count && pieces->reads < PIECES_AT_MOST) {
        unsigned end;
        pieces->read[pieces->reads] = join(pieces, &end);
        for (unsigned index = pieces->closed; index < end; index++)
            pieces->read_with[index] = pieces->reads;
        pieces->reads++;
        pieces->closed = end;
    }
    pieces->count = pieces->closed;
    return pieces->reads;
}

/* After a pause, everything that this needs has left the caches. What is urgent is read once before, for the caches alone. */
unsigned pieces_read(pid_t process, struct pieces *pieces, bool is_urgent)
{
    if (is_urgent)
        remote_read_pieces(process, pieces->read, pieces->reads);
    unsigned whole = remote_read_pieces(process, pieces->read, pieces->reads);
    for (unsigned index = 0; index < pieces->count; index++) {
        const struct remote_piece *wanted = &pieces->wanted[index], *read = &pieces->read[pieces->read_with[index]];
        if (pieces->read_with[index] < whole && read->into != wanted->into)
            memcpy(wanted->into, (const char *)read->into + (wanted->address - read->address), wanted->bytes);
    }
    return whole;
}
