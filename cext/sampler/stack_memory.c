#include "sampler/stack_memory.h"

#include "sampler/remote.h"

enum { TRIES = 4, FRAMES_KEPT = 6, MORE_BYTES = 4096 }; /* frames may have been added since it was read last */
_Static_assert(4 + BESIDE_AT_MOST <= PIECES_AT_MOST, "the stack and what is beside it are read by one call");

static uint64_t of_state(const struct stack_memory *memory, const struct interpreter_layout *layout, uint64_t offset)
{
    return word_at(memory->state, layout->thread_bytes, offset);
}

/* Where frames of the thread are by its state, which was read just now. If the beginning of their memory is farther away than
   can be read, it is left out. */
static struct stack_place place_of(const struct stack_memory *memory, const struct interpreter_layout *layout)
{
    struct stack_place place = {.chunk = of_state(memory, layout, layout->thread_chunk)};
    uint64_t top = of_state(memory, layout, layout->thread_top), limit = of_state(memory, layout, layout->thread_limit);
    if (layout->thread_steps)
        place.step = of_state(memory, layout, layout->thread_frame);
    if (!place.chunk || top < place.chunk || limit < top)
        return place;
    place.end = limit - top < MORE_BYTES ? limit : top + MORE_BYTES;
    place.begin = place.end - place.chunk > CHUNK_BYTES_AT_MOST ? place.end - CHUNK_BYTES_AT_MOST : place.chunk;
    return place;
}

static unsigned add_beside(struct remote_piece pieces[], unsigned count, struct stack_memory *into, unsigned first, unsigned end)
{
    for (unsigned index = first; index < end; index++)
        pieces[count++] = (struct remote_piece){into->beside.address[index], into->beside_memory[index], into->beside.bytes[index]};
    return count;
}

static bool read_at_once(pid_t pid, const struct interpreter_layout *layout, uint64_t state, const struct stack_place *place,
                         struct stack_memory *into)
{
    uint64_t where = !layout->thread_steps ? state + layout->thread_frame : place->step ? place->step + layout->step_frame : 0;
    struct remote_piece pieces[PIECES_AT_MOST] = {{state, into->state, layout->thread_bytes}};
    unsigned count = 1, needed, read;
    into->innermost = into->innermost_after = 0;
    into->beside = place->beside;
    if (where)
        pieces[count++] = (struct remote_piece){where, &into->innermost, sizeof into->innermost};
    if (place->end > place->begin)
        pieces[count++] = (struct remote_piece){place->begin, into->chunk, place->end - place->begin};
    count = add_beside(pieces, count, into, 0, place->beside.frames);
    if (where)
        pieces[count++] = (struct remote_piece){where, &into->innermost_after, sizeof into->innermost_after};
    needed = count;
    count = add_beside(pieces, count, into, place->beside.frames, place->beside.count);
    read = remote_read_pieces(pid, pieces, count);
    into->beside.count -= read < count ? count - read : 0;
    return read >= needed;
}

static bool is_there(const struct stack_place *known, const struct stack_place *now, uint64_t top)
{
    bool has_top = known->begin == known->end || (known->begin <= top && top <= known->end);
    return known->chunk == now->chunk && has_top;
}

/* Up to CPython 3.12 C code that calls Python code has a place of its own for the innermost frame. If it is another one than the last
   time, the frames are not read again: then what is called so would be found too rarely. */
static void find_step(pid_t pid, const struct interpreter_layout *layout, struct stack_place *known, uint64_t step,
                      struct stack_memory *into)
{
    into->is_late = known->step != step;
    if (!into->is_late)
        return;
    known->step = step;
    into->innermost = 0;
    if (step)
        remote_read(pid, step + layout->step_frame, &into->innermost, sizeof into->innermost);
    into->innermost_after = into->innermost;
}

static void finish(const struct interpreter_layout *layout, const struct stack_place *known, struct stack_memory *into)
{
    into->chunk_address = known->begin;
    into->chunk_bytes = known->end - known->begin;
    into->used_bytes = into->chunk_bytes ? of_state(into, layout, layout->thread_top) - known->begin : 0;
}

bool stack_memory_read(pid_t pid, const struct interpreter_layout *layout, uint64_t state, struct stack_place *known,
                       struct stack_memory *into)
{
    if (layout->thread_bytes > sizeof into->state)
        return false;
    for (int tries = 0; tries < TRIES; tries++) {
        struct stack_place now = {0};
        if (read_at_once(pid, layout, state, known, into)) {
            now = place_of(into, layout);
            now.beside = known->beside;
            if (is_there(known, &now, of_state(into, layout, layout->thread_top))) {
                find_step(pid, layout, known, now.step, into);
                finish(layout, known, into);
                return true;
            }
        } else if (!known->step && known->end == known->begin) {
            return false;
        }
        *known = now;
    }
    return false;
}

const char *stack_memory_frame(const struct stack_memory *memory, const struct interpreter_layout *layout, uint64_t address)
{
    uint64_t bytes = layout->frame_bytes, offset = address - memory->chunk_address;
    bool is_inside = address >= memory->chunk_address && offset <= memory->chunk_bytes && bytes <= memory->chunk_bytes - offset;
    return is_inside ? memory->chunk + offset : NULL;
}

void beside_add(struct beside *beside, uint64_t address, size_t bytes)
{
    if (beside->count == BESIDE_AT_MOST || bytes > BESIDE_BYTES_AT_MOST)
        return;
    beside->address[beside->count] = address;
    beside->bytes[beside->count++] = bytes;
}

void beside_add_frame(struct beside *beside, uint64_t address, size_t bytes)
{
    beside_add(beside, address, bytes);
    beside->frames = beside->count;
}

static bool is_beside(const struct beside *beside, uint64_t address)
{
    unsigned index = 0;
    while (index < beside->count && beside->address[index] != address)
        index++;
    return index < beside->count;
}

static void keep_frame(struct beside *kept, const struct beside *from, unsigned index)
{
    if (!is_beside(kept, from->address[index]))
        beside_add_frame(kept, from->address[index], from->bytes[index]);
}

void beside_keep(struct beside *last, const struct beside *now)
{
    struct beside kept = {.has_innermost = last->has_innermost || now->has_innermost};
    if (last->has_innermost && !now->has_innermost)
        keep_frame(&kept, last, 0);
    for (unsigned index = 0; index < now->frames; index++)
        keep_frame(&kept, now, index);
    for (unsigned index = 0; index < last->frames && kept.count < FRAMES_KEPT; index++)
        keep_frame(&kept, last, index);
    for (unsigned index = now->frames; index < now->count; index++)
        beside_add(&kept, now->address[index], now->bytes[index]);
    *last = kept;
}

const char *stack_memory_beside(const struct stack_memory *memory, uint64_t address, size_t bytes)
{
    for (unsigned index = 0; index < memory->beside.count; index++)
        if (memory->beside.address[index] == address && memory->beside.bytes[index] == bytes)
            return memory->beside_memory[index];
    return NULL;
}

uint64_t frame_code_of(const struct interpreter_layout *layout, const char *frame)
{
    return word_at(frame, layout->frame_bytes, layout->frame_code) & ~layout->frame_tag;
}
