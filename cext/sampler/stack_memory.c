#include "sampler/stack_memory.h"

#include "sampler/pieces.h"

enum {
    TRIES = 4,
    MORE_BYTES = 1024, /* frames may have been added since it was read last */
    STEPS_KEPT_FOR = 16, /* samples */
};
_Static_assert(3 + 2 * STEPS_AT_MOST + 3 * FRAMES_KEPT + BESIDE_AT_MOST <= PIECES_AT_MOST,
               "the stack and what is beside it are read by one call, even if nothing is close to anything else");

static uint64_t of_state(const struct stack_memory *memory, const struct interpreter_layout *layout, uint64_t offset)
{
    return word_at(memory->state, layout->thread_bytes, offset);
}

/* Where frames of the thread are by its state, which was read just now. If the beginning of their memory is farther away than
   can be read, it is left out. While a chunk is being given back, the thread's limit is still the end of that chunk. */
static struct stack_place place_of(const struct stack_memory *memory, const struct interpreter_layout *layout)
{
    struct stack_place place = {.chunk = of_state(memory, layout, layout->thread_chunk)};
    uint64_t top = of_state(memory, layout, layout->thread_top), limit = of_state(memory, layout, layout->thread_limit);
    if (!place.chunk || top < place.chunk)
        return place;
    place.end = limit < top ? top : limit - top < MORE_BYTES ? limit : top + MORE_BYTES;
    place.begin = place.end - place.chunk > CHUNK_BYTES_AT_MOST ? place.end - CHUNK_BYTES_AT_MOST : place.chunk;
    return place;
}

/* The innermost frame of each known step, before and after the frames were read; and what the state of the thread notes after. What
   it noted before is in the state itself. */
struct innermost_read {
    uint64_t before[STEPS_AT_MOST], after[STEPS_AT_MOST], state_after;
};

static void add_steps(struct pieces *pieces, const struct interpreter_layout *layout, const struct steps *steps,
                      uint64_t innermost[STEPS_AT_MOST])
{
    for (unsigned index = 0; index < steps->count; index++)
        pieces_add(pieces, steps->address[index] + layout->step_frame, &innermost[index], sizeof *innermost);
}

/* They are close to the frames. */
static void add_states(struct pieces *pieces, const struct interpreter_layout *layout, const struct stack_memory *memory,
                       char states[FRAMES_KEPT])
{
    for (unsigned index = 0; index < memory->beside.frames && index < FRAMES_KEPT; index++)
        pieces_add(pieces, memory->beside.piece[index].address - layout->coroutine_frame + layout->coroutine_state, &states[index],
                   sizeof states[index]);
}

/* The innermost one last, so that it is read right before the chunk. */
static void add_frames_before(struct pieces *pieces, const struct interpreter_layout *layout, struct stack_memory *into)
{
    for (unsigned index = into->beside.frames < FRAMES_KEPT ? into->beside.frames : FRAMES_KEPT; index > 0; index--)
        pieces_add(pieces, into->beside.piece[index - 1].address, into->frames_before[index - 1], layout->frame_bytes);
    add_states(pieces, layout, into, into->states_before);
}

static void add_beside(struct pieces *pieces, struct stack_memory *into, unsigned index)
{
    pieces_add(pieces, into->beside.piece[index].address, into->beside_memory[index], into->beside.piece[index].bytes);
}

/* Returns how many pieces are needed. The heads of code objects are not: they hardly change. */
static unsigned add_all(struct pieces *pieces, const struct interpreter_layout *layout, uint64_t state,
                        const struct stack_place *place, struct stack_memory *into, struct innermost_read *innermost)
{
    pieces_add(pieces, state, into->state, layout->thread_bytes);
    pieces_close(pieces);
    add_steps(pieces, layout, &place->steps, innermost->before);
    if (into->is_read_twice)
        add_frames_before(pieces, layout, into);
    pieces_close(pieces);
    if (place->end > place->begin)
        pieces_add(pieces, place->begin, into->chunk, place->end - place->begin);
    pieces_close(pieces);
    for (unsigned index = 0; index < place->beside.frames; index++)
        add_beside(pieces, into, index);
    add_states(pieces, layout, into, into->states);
    add_steps(pieces, layout, &place->steps, innermost->after);
    pieces_close(pieces);
    pieces_add(pieces, state + layout->thread_frame, &innermost->state_after, sizeof innermost->state_after);
    unsigned needed = pieces_close(pieces);
    for (unsigned index = place->beside.frames; index < place->beside.count; index++) {
        add_beside(pieces, into, index);
        pieces_close(pieces);
    }
    return needed;
}

static bool read_at_once(pid_t pid, const struct interpreter_layout *layout, uint64_t state, const struct stack_place *place,
                         struct stack_memory *into, struct innermost_read *innermost)
{
    static __thread struct pieces pieces;
    *innermost = (struct innermost_read){{0}, {0}, 0};
    into->beside = place->beside;
    into->is_read_twice = beside_has_generator(&place->beside);
    pieces_begin(&pieces);
    unsigned needed = add_all(&pieces, layout, state, place, into, innermost);
    unsigned read = pieces_read(pid, &pieces, into->is_read_twice);
    into->beside.count -= pieces.reads - read;
    return read >= needed;
}

/* False also if it was not known where the frames are, and now it is. */
static bool is_there(const struct stack_place *known, const struct stack_place *now, uint64_t top)
{
    bool has_top = now->begin == now->end ? known->begin == known->end : known->begin <= top && top <= known->end;
    return known->chunk == now->chunk && has_top;
}

/* --- the innermost frame */

static unsigned find_step(const struct steps *steps, uint64_t step)
{
    unsigned index = 0;
    while (index < steps->count && steps->address[index] != step)
        index++;
    return index;
}

/* Put the step first; forget those that were not used for STEPS_KEPT_FOR samples. */
static void keep_step(struct steps *steps, uint64_t step)
{
    struct steps kept = {.address = {step}, .count = 1};
    for (unsigned index = 0; index < steps->count && kept.count < STEPS_AT_MOST; index++) {
        unsigned age = steps->age[index] + 1;
        if (steps->address[index] == step || age > STEPS_KEPT_FOR)
            continue;
        kept.address[kept.count] = steps->address[index];
        kept.age[kept.count++] = age;
    }
    *steps = kept;
}

/* If the step is not among the last ones, the frames are not read again: then what C code calls would be found too rarely. */
static void read_late(pid_t pid, const struct interpreter_layout *layout, uint64_t step, struct stack_memory *into)
{
    into->is_late = true;
    into->innermost = 0;
    remote_read(pid, step + layout->step_frame, &into->innermost, sizeof into->innermost);
    into->innermost_after = into->innermost;
}

static void tell_innermost(pid_t pid, const struct interpreter_layout *layout, struct steps *steps,
                           const struct innermost_read *read, struct stack_memory *into)
{
    uint64_t noted = of_state(into, layout, layout->thread_frame);
    into->is_late = false;
    into->innermost = noted;
    into->innermost_after = read->state_after;
    if (!layout->thread_steps || !noted)
        return;
    unsigned before = find_step(steps, noted), after = find_step(steps, read->state_after);
    if (before == steps->count) {
        read_late(pid, layout, noted, into);
    } else {
        into->innermost = read->before[before];
        into->innermost_after = after < steps->count ? read->after[after] : 0;
    }
    keep_step(steps, noted);
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
    if (layout->thread_bytes > sizeof into->state || layout->frame_bytes > FRAME_BYTES_AT_MOST)
        return false;
    for (int tries = 0; tries < TRIES; tries++) {
        struct stack_place now = {0};
        struct innermost_read innermost;
        if (read_at_once(pid, layout, state, known, into, &innermost)) {
            now = place_of(into, layout);
            now.steps = known->steps;
            now.beside = known->beside;
            if (is_there(known, &now, of_state(into, layout, layout->thread_top))) {
                tell_innermost(pid, layout, &known->steps, &innermost, into);
                finish(layout, known, into);
                return true;
            }
        } else if (!known->steps.count && known->end == known->begin) {
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

const char *stack_memory_beside(const struct stack_memory *memory, uint64_t address, size_t bytes)
{
    for (unsigned index = 0; index < memory->beside.count; index++)
        if (memory->beside.piece[index].address == address && memory->beside.piece[index].bytes == bytes)
            return memory->beside_memory[index];
    return NULL;
}

/* Which of the frames that are read twice it is; FRAMES_KEPT if none. */
static unsigned read_twice(const struct stack_memory *memory, uint64_t address)
{
    for (unsigned index = 0; index < memory->beside.frames && index < FRAMES_KEPT && memory->is_read_twice; index++)
        if (memory->beside.piece[index].address == address)
            return index;
    return FRAMES_KEPT;
}

const char *stack_memory_before(const struct stack_memory *memory, uint64_t address)
{
    unsigned index = read_twice(memory, address);
    return index < FRAMES_KEPT ? memory->frames_before[index] : NULL;
}

const char *stack_memory_state(const struct stack_memory *memory, bool is_before, uint64_t address)
{
    unsigned index = read_twice(memory, address);
    return index == FRAMES_KEPT ? NULL : is_before ? &memory->states_before[index] : &memory->states[index];
}

uint64_t frame_code_of(const struct interpreter_layout *layout, const char *frame)
{
    return word_at(frame, layout->frame_bytes, layout->frame_code) & ~layout->frame_tag;
}
