#include "sampler/stacks.h"

#include <string.h>

#include "sampler/innermost.h"

enum {
    FRAMES_AT_MOST = 128, /* of a deeper stack the innermost ones are read */
    FRAME_BYTES_AT_MOST = 256,
    TRIES = 5,
    CODES_AT_A_TIME = 32,
    MARKED_BYTES = 1024,
};

struct read_frame {
    uint64_t address, code, place;
    bool is_of_generator, is_of_coroutine;
};

struct reading_of_stack {
    struct sampled_process *process;
    struct stack_memory memory;
    struct read_frame frames[FRAMES_AT_MOST];
    unsigned count;
    bool cut;
    bool is_mixed;        /* a generator ran before or after the frames were read, but apparently not then */
    struct beside beside; /* what was needed */
};

/* The frame at the address; NULL if it cannot be read. */
static const char *frame_at(struct reading_of_stack *reading, uint64_t address, char into[FRAME_BYTES_AT_MOST])
{
    size_t bytes = reading->process->layout.frame_bytes;
    const char *frame = stack_memory_frame(&reading->memory, &reading->process->layout, address);
    if (frame || bytes > FRAME_BYTES_AT_MOST)
        return frame;
    beside_add_frame(&reading->beside, address, bytes);
    frame = stack_memory_beside(&reading->memory, address, bytes);
    if (frame)
        return frame;
    return remote_read(reading->process->reached, address, into, bytes) ? into : NULL;
}

static uint8_t owner_of(const struct reading_of_stack *reading, const char *frame)
{
    const struct interpreter_layout *layout = &reading->process->layout;
    return layout->frame_owner < layout->frame_bytes ? (uint8_t)frame[layout->frame_owner] : 0;
}

static void keep_frame(struct reading_of_stack *reading, uint64_t address, const char *frame)
{
    const struct interpreter_layout *layout = &reading->process->layout;
    size_t bytes = layout->frame_bytes;
    uint8_t owner = owner_of(reading, frame);
    uint64_t code = frame_code_of(layout, frame);
    bool has_ended = !code && reading->count == 0; /* meanwhile: its caller continues */
    if (owner >= layout->frame_no_code || has_ended)
        return;
    reading->frames[reading->count++] = (struct read_frame){
        .address = address,
        .is_of_generator = owner == layout->frame_of_generator,
        .code = code,
        .place = word_at(frame, bytes, layout->frame_place),
    };
}

/* The frames from that at the address outward; false if one of them cannot be read. */
static bool follow_frames(struct reading_of_stack *reading, uint64_t address)
{
    char one[FRAME_BYTES_AT_MOST];
    reading->count = reading->beside.count = reading->beside.frames = 0;
    reading->cut = false;
    for (unsigned steps = 0; address; steps++) {
        if (reading->count == FRAMES_AT_MOST || steps == 2 * FRAMES_AT_MOST)
            return reading->cut = true;
        const char *frame = frame_at(reading, address, one);
        if (!frame)
            return false;
        keep_frame(reading, address, frame);
        address = word_at(frame, reading->process->layout.frame_bytes, reading->process->layout.frame_previous);
        if (!address && owner_of(reading, frame) == reading->process->layout.frame_of_generator)
            return false; /* it was suspended meanwhile: while it runs, somebody runs it */
    }
    return true;
}

/* The heads of the code objects of `count` frames from `first` on; false if one cannot be read. */
static bool read_heads(struct reading_of_stack *reading, unsigned first, unsigned count, char heads[][CODE_BYTES_AT_MOST])
{
    struct remote_piece pieces[CODES_AT_A_TIME];
    size_t bytes = reading->process->layout.code_bytes;
    unsigned missing = 0;
    for (unsigned index = 0; index < count; index++) {
        uint64_t code = reading->frames[first + index].code;
        const char *head = stack_memory_beside(&reading->memory, code, bytes);
        beside_add(&reading->beside, code, bytes);
        if (head)
            memcpy(heads[index], head, bytes);
        else
            pieces[missing++] = (struct remote_piece){code, heads[index], bytes};
    }
    return !missing || remote_read_pieces(reading->process->reached, pieces, missing) == missing;
}

/* The sites of `count` frames from `first` on; false if one is of no code. */
static bool read_sites(struct reading_of_stack *reading, unsigned first, unsigned count, uint32_t *sites)
{
    static __thread char heads[CODES_AT_A_TIME][CODE_BYTES_AT_MOST];
    struct sampled_process *process = reading->process;
    if (!read_heads(reading, first, count, heads))
        return false;
    for (unsigned index = 0; index < count; index++) {
        struct read_frame *frame = &reading->frames[first + index];
        uint32_t flags = half_word_at(heads[index], CODE_BYTES_AT_MOST, process->layout.code_flags);
        frame->is_of_coroutine = frame->is_of_generator && (flags & process->layout.code_of_coroutine);
        sites[index] = codes_site(process, frame->code, heads[index], frame->place);
        if (!sites[index])
            return false;
    }
    return true;
}

/* From where in the memory the outermost frame that is not in it was called, or 0. */
static uint64_t called_from(const struct reading_of_stack *reading)
{
    const struct interpreter_layout *layout = &reading->process->layout;
    unsigned index = 0;
    while (index < reading->count && !stack_memory_frame(&reading->memory, layout, reading->frames[index].address))
        index++;
    return index < reading->count ? reading->frames[index].address : 0;
}

static bool is_elsewhere(const struct reading_of_stack *reading, uint64_t address)
{
    return address && !stack_memory_frame(&reading->memory, &reading->process->layout, address);
}

/* The frames from that of a generator, which is elsewhere, if it ran when the memory was read. */
static bool follow_generator(struct reading_of_stack *reading, struct innermost innermost, uint64_t address)
{
    const struct stack_memory *memory = &reading->memory;
    if (!is_elsewhere(reading, address) || !follow_frames(reading, address))
        return false;
    uint64_t from = called_from(reading);
    bool is_generator = reading->count && reading->frames[0].is_of_generator;
    return is_generator && (innermost.is_open ? from == innermost.address : !memory->is_late);
}

/* The same for the generators of the last samples. */
static bool follow_generator_beside(struct reading_of_stack *reading, struct innermost innermost)
{
    const struct beside *beside = &reading->memory.beside;
    unsigned index = 0;
    while (index < beside->frames && !follow_generator(reading, innermost, beside->address[index]))
        index++;
    return index < beside->frames;
}

static bool read_frames(struct reading_of_stack *reading, struct sampled_thread *thread)
{
    struct sampled_process *process = reading->process;
    if (!stack_memory_read(process->reached, &process->layout, thread->address, &thread->stack, &reading->memory))
        return false;
    uint64_t before = reading->memory.innermost, after = reading->memory.innermost_after;
    bool is_late = reading->memory.is_late;
    struct innermost innermost = innermost_frame(process, &reading->memory, &thread->last_frames);
    if (!before && !innermost.is_open)
        return !is_late && follow_frames(reading, before);
    if (follow_generator(reading, innermost, before) || follow_generator(reading, innermost, after) ||
        follow_generator_beside(reading, innermost))
        return true;
    reading->is_mixed = !is_late && (is_elsewhere(reading, before) || is_elsewhere(reading, after));
    if (reading->is_mixed)
        return false;
    if (innermost.address || is_late)
        return innermost.address && follow_frames(reading, innermost.address);
    return follow_frames(reading, before) || (after && follow_frames(reading, after));
}

/* The number of the stack of frames that were read; false if one of them is of no code: then they belong to several instants. */
static bool name_frames(struct reading_of_stack *reading, uint32_t *number)
{
    uint32_t sites[FRAMES_AT_MOST];
    for (unsigned first = 0; first < reading->count; first += CODES_AT_A_TIME) {
        unsigned left = reading->count - first;
        if (!read_sites(reading, first, left < CODES_AT_A_TIME ? left : CODES_AT_A_TIME, sites + first))
            return false;
    }
    *number = 0;
    for (unsigned index = reading->count; index > 0; index--)
        *number = sites[index - 1] == NO_SITE ? *number : tables_stack(&reading->process->tables, sites[index - 1], *number, reading->cut && index == reading->count);
    return true;
}

/* The outermost of the coroutines and generators around the innermost coroutine, each of which runs the next one. */
static const struct read_frame *task_in(const struct reading_of_stack *reading)
{
    unsigned index = 0;
    while (index < reading->count && !reading->frames[index].is_of_coroutine)
        index++;
    if (index == reading->count)
        return NULL;
    while (index + 1 < reading->count && reading->frames[index + 1].is_of_generator)
        index++;
    return &reading->frames[index];
}

static void tell_tasks(const struct reading_of_stack *reading, struct found_stack *found)
{
    const struct codes *codes = &reading->process->codes;
    const struct read_frame *task = task_in(reading);
    if (task) {
        found->coroutine = task->address - reading->process->layout.coroutine_frame;
        found->coroutine_function = codes_function(codes, task->code);
    }
    if (reading->count && !reading->cut)
        found->outermost_function = codes_function(codes, reading->frames[reading->count - 1].code);
}

/* Variables and places of the innermost frames. What goes on changes them, unless it is native code. */
static uint64_t mark_of(const struct reading_of_stack *reading)
{
    const struct stack_memory *memory = &reading->memory;
    size_t bytes = memory->used_bytes < MARKED_BYTES ? memory->used_bytes : MARKED_BYTES;
    uint64_t variables = key_of_text(memory->chunk + memory->used_bytes - bytes, bytes);
    const struct read_frame *innermost = reading->frames;
    return reading->count ? key_of(variables, key_of(innermost->address, innermost->place)) : variables;
}

static bool is_innermost_beside(const struct reading_of_stack *reading)
{
    return reading->count && reading->beside.frames && reading->beside.address[0] == reading->frames[0].address;
}

static void keep_addresses(const struct reading_of_stack *reading, struct last_frames *last)
{
    last->count = reading->count < LAST_FRAMES_AT_MOST ? reading->count : LAST_FRAMES_AT_MOST;
    for (unsigned index = 0; index < last->count; index++)
        last->address[index] = reading->frames[index].address;
    if (last->count)
        last->address[last->count - 1] = reading->frames[reading->count - 1].address;
}

/* Frames that are of no code are not read again: by then a longer function would run more likely than the short one that it was. */
struct found_stack stack_of(struct sampled_process *process, struct sampled_thread *thread)
{
    static __thread struct reading_of_stack reading;
    struct found_stack found = {0};
    bool is_read = false;
    reading.process = process;
    reading.count = reading.beside.count = reading.beside.frames = 0;
    reading.is_mixed = false;
    for (int tries = 0; !is_read && !reading.is_mixed && tries < TRIES; tries++)
        is_read = read_frames(&reading, thread);
    found.torn = !is_read || !name_frames(&reading, &found.number);
    reading.beside.has_innermost = is_innermost_beside(&reading);
    beside_keep(&thread->stack.beside, &reading.beside);
    if (found.torn) {
        found.number = STACK_NOT_READ;
    } else {
        found.mark = mark_of(&reading);
        keep_addresses(&reading, &thread->last_frames);
        tell_tasks(&reading, &found);
    }
    return found;
}
