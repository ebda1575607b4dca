#include "sampler/stacks.h"

#include <string.h>

#include "sampler/generators.h"

enum {
    FRAMES_AT_MOST = 128, /* of a deeper stack the innermost ones are read */
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
    uint64_t c_frame; /* the innermost that stands for C code, or 0 */
    bool cut;
    bool is_mixed;        /* a generator that was not read in time may have run */
    enum copy copy;       /* of the frames of generators */
    struct beside beside; /* what was needed */
};

static bool is_in_chunk(const struct reading_of_stack *reading, uint64_t address)
{
    return stack_memory_frame(&reading->memory, &reading->process->layout, address) != NULL;
}

/* The frame at the address; NULL if it cannot be read. */
static const char *frame_at(const struct reading_of_stack *reading, uint64_t address, char into[FRAME_BYTES_AT_MOST])
{
    const char *frame = stack_memory_frame(&reading->memory, &reading->process->layout, address);
    return frame ? frame : frame_elsewhere(reading->process, &reading->memory, reading->copy, address, into);
}

/* Whether it stands for C code. */
static bool is_of_c(const struct reading_of_stack *reading, uint64_t address, const char *frame)
{
    bool is_now = frame_owner_of(&reading->process->layout, frame) >= reading->process->layout.frame_no_code;
    return is_now || beside_around(&reading->memory.beside, address);
}

/* The next time a frame that is elsewhere is read with the others, and so is the one that has resumed it. */
static void note_beside(struct reading_of_stack *reading, uint64_t address, const char *frame, uint64_t around)
{
    const struct interpreter_layout *layout = &reading->process->layout;
    struct beside_piece piece = {
        .address = address,
        .bytes = layout->frame_bytes,
        .around = is_of_c(reading, address, frame) ? around : 0,
        .of_generator = frame_owner_of(layout, frame) == layout->frame_of_generator,
    };
    beside_add_frame(&reading->beside, piece);
}

static void keep_frame(struct reading_of_stack *reading, uint64_t address, const char *frame)
{
    const struct interpreter_layout *layout = &reading->process->layout;
    size_t bytes = layout->frame_bytes;
    uint64_t code = frame_code_of(layout, frame);
    bool has_ended = !code && reading->count == 0; /* meanwhile: its caller continues */
    if (has_ended)
        return;
    if (is_of_c(reading, address, frame)) {
        reading->c_frame = reading->c_frame ? reading->c_frame : address;
        return;
    }
    reading->frames[reading->count++] = (struct read_frame){
        .address = address,
        .is_of_generator = frame_owner_of(layout, frame) == layout->frame_of_generator,
        .code = code,
        .place = word_at(frame, bytes, layout->frame_place),
    };
}

/* The frames from that at the address outward; false if one of them cannot be read. A generator that was suspended meanwhile no
   longer notes who resumed it: that was `root`, if it is the innermost; while others run, somebody runs them. */
static bool follow_frames(struct reading_of_stack *reading, uint64_t address, uint64_t root, enum copy copy)
{
    const struct interpreter_layout *layout = &reading->process->layout;
    char one[FRAME_BYTES_AT_MOST];
    bool was_elsewhere = false;
    uint64_t inner = 0;
    reading->copy = copy;
    reading->count = reading->beside.count = reading->beside.frames = 0;
    reading->c_frame = 0;
    reading->cut = false;
    for (unsigned steps = 0; address; steps++) {
        if (reading->count == FRAMES_AT_MOST || steps == 2 * FRAMES_AT_MOST)
            return reading->cut = true;
        const char *frame = frame_at(reading, address, one);
        if (!frame)
            return false;
        uint64_t around = frame_around(reading->process, &reading->memory, address, frame, inner);
        bool is_elsewhere = !is_in_chunk(reading, address);
        if (is_elsewhere || was_elsewhere)
            note_beside(reading, address, frame, around);
        keep_frame(reading, address, frame);
        was_elsewhere = is_elsewhere;
        inner = address;
        address = around;
        if (!address && frame_owner_of(layout, frame) == layout->frame_of_generator && !(address = steps ? 0 : root))
            return false;
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

/* If a generator around the innermost frame has ended since, it is as it was before. */
static bool follow(struct reading_of_stack *reading, uint64_t address)
{
    return follow_frames(reading, address, 0, COPY_AFTER) || follow_frames(reading, address, 0, COPY_BEFORE);
}

static bool follow_what_ran(struct reading_of_stack *reading, struct innermost innermost)
{
    const struct stack_memory *memory = &reading->memory;
    struct running_generators generators = generators_within(reading->process, memory, innermost);
    if (generators.are_unknown || generators.innermost) {
        reading->is_mixed = generators.are_unknown || !follow_frames(reading, generators.innermost, generators.root, generators.copy);
        return !reading->is_mixed;
    }
    if (innermost.address || memory->is_late)
        return innermost.address && follow(reading, innermost.address);
    return follow(reading, memory->innermost) || (memory->innermost_after && follow(reading, memory->innermost_after));
}

/* A generator that was not read in time is read in time the next time, and so are those around it, as far as they are known. */
static void note_generators(struct reading_of_stack *reading, uint64_t address)
{
    const struct stack_memory *memory = &reading->memory;
    const struct interpreter_layout *layout = &reading->process->layout;
    char one[FRAME_BYTES_AT_MOST];
    for (unsigned steps = 0; steps < FRAMES_KEPT && address && !is_in_chunk(reading, address); steps++) {
        const char *frame = frame_elsewhere(reading->process, memory, COPY_BEFORE, address, one);
        bool is_generator = frame && frame_owner_of(layout, frame) == layout->frame_of_generator;
        if (!is_generator && !(frame && is_of_c(reading, address, frame)))
            return; /* it has ended, and its memory is used for something else */
        uint64_t around = frame_around(reading->process, memory, address, frame, 0);
        note_beside(reading, address, frame, around);
        address = stack_memory_beside(memory, address, layout->frame_bytes) ? around : 0;
    }
}

static bool read_frames(struct reading_of_stack *reading, struct sampled_thread *thread)
{
    struct sampled_process *process = reading->process;
    const struct stack_memory *memory = &reading->memory;
    reading->count = reading->beside.count = reading->beside.frames = 0;
    if (!stack_memory_read(process->reached, &process->layout, thread->address, &thread->stack, &reading->memory))
        return false;
    struct innermost innermost = innermost_frame(process, memory, &thread->last_frames);
    if (!memory->innermost && !innermost.is_open)
        return !memory->is_late;
    bool is_read = follow_what_ran(reading, innermost);
    note_generators(reading, memory->innermost);
    note_generators(reading, memory->innermost_after);
    return is_read;
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
        if (sites[index - 1] != NO_SITE)
            *number = tables_stack(&reading->process->tables, sites[index - 1], *number, reading->cut && index == reading->count);
    return true;
}

/* The outermost coroutine around the innermost one, if only generators are between them, each of which runs the next one. */
static const struct read_frame *task_in(const struct reading_of_stack *reading)
{
    unsigned index = 0;
    while (index < reading->count && !reading->frames[index].is_of_coroutine)
        index++;
    if (index == reading->count)
        return NULL;
    const struct read_frame *outermost = &reading->frames[index];
    for (; index < reading->count && reading->frames[index].is_of_generator; index++)
        if (reading->frames[index].is_of_coroutine)
            outermost = &reading->frames[index];
    return outermost;
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
    return reading->count && reading->beside.frames && reading->beside.piece[0].address == reading->frames[0].address;
}

/* Up to CPython 3.12 a step is on the C stack, from 3.12 on the frames that stand for C code. */
static void keep_addresses(const struct reading_of_stack *reading, const struct steps *steps, struct last_frames *last)
{
    last->c_stack = reading->c_frame ? reading->c_frame : steps->count ? steps->address[0] : 0;
    last->count = reading->count < LAST_FRAMES_AT_MOST ? reading->count : LAST_FRAMES_AT_MOST;
    for (unsigned index = 0; index < last->count; index++)
        last->address[index] = reading->frames[index].address;
    if (last->count)
        last->address[last->count - 1] = reading->frames[reading->count - 1].address;
}

/* Whether a generator ran whose frame was not read in time, because the thread was elsewhere before. The next reading is in time. */
static bool is_late_for_generator(const struct reading_of_stack *reading)
{
    const struct stack_memory *memory = &reading->memory;
    return memory->is_late && memory->innermost_after && !is_in_chunk(reading, memory->innermost_after);
}

/* Frames that are of no code are not read again: by then a longer function would run more likely than the short one that it was. */
struct found_stack stack_of(struct sampled_process *process, struct sampled_thread *thread)
{
    static __thread struct reading_of_stack reading;
    struct found_stack found = {0};
    bool is_read = false;
    reading.process = process;
    reading.is_mixed = false;
    for (int tries = 0; !is_read && !reading.is_mixed && tries < TRIES; tries++) {
        is_read = read_frames(&reading, thread);
        if (tries == 0 && is_late_for_generator(&reading)) {
            beside_keep(&thread->stack.beside, &reading.beside);
            is_read = reading.is_mixed = false;
        }
    }
    found.torn = !is_read || !name_frames(&reading, &found.number);
    reading.beside.has_innermost = is_innermost_beside(&reading);
    beside_keep(&thread->stack.beside, &reading.beside);
    if (found.torn) {
        found.number = STACK_NOT_READ;
    } else {
        found.mark = mark_of(&reading);
        keep_addresses(&reading, &thread->stack.steps, &thread->last_frames);
        tell_tasks(&reading, &found);
    }
    return found;
}
