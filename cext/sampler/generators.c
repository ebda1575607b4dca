#include "sampler/generators.h"

/* A generator runs if its state says so, and its frame notes the one around it. While the memory is read, a generator of
   microseconds begins or ends: it may have run before and not after, or the other way round. Then the frame that resumed it tells.
   If that is no longer at the same instruction, it has gone on itself. If it is, and if samples have shown that the instruction does
   nothing but resume generators, one ran. C code that also works by itself, as `executemany` does, is at the same instruction all
   the time: then what was read before counts, which is wrong as often one way as the other. */

enum { FRAMES_AT_MOST = 128 };

/* Frames that are elsewhere, and the one that resumed the outermost of them. */
struct branch {
    uint64_t innermost, root;
    unsigned count; /* 0: there is none */
};

uint8_t frame_owner_of(const struct interpreter_layout *layout, const char *frame)
{
    return layout->frame_owner < layout->frame_bytes ? (uint8_t)frame[layout->frame_owner] : 0;
}

const char *frame_elsewhere(const struct sampled_process *process, const struct stack_memory *memory, enum copy copy,
                            uint64_t address, char into[FRAME_BYTES_AT_MOST])
{
    size_t bytes = process->layout.frame_bytes;
    const char *before = copy == COPY_BEFORE ? stack_memory_before(memory, address) : NULL;
    const char *frame = before ? before : stack_memory_beside(memory, address, bytes);
    return frame ? frame : remote_read(process->reached, address, into, bytes) ? into : NULL;
}

uint64_t frame_around(const struct sampled_process *process, const struct stack_memory *memory, uint64_t address,
                      const char *frame)
{
    const struct interpreter_layout *layout = &process->layout;
    uint64_t known = frame_owner_of(layout, frame) < layout->frame_no_code ? beside_around(&memory->beside, address) : 0;
    return known ? known : word_at(frame, layout->frame_bytes, layout->frame_previous);
}

static bool is_elsewhere(const struct sampled_process *process, const struct stack_memory *memory, uint64_t address)
{
    return address && !stack_memory_frame(memory, &process->layout, address);
}

static uint64_t key_of_instruction(const struct interpreter_layout *layout, const char *frame)
{
    return frame ? key_of(frame_code_of(layout, frame), word_at(frame, layout->frame_bytes, layout->frame_place)) : 0;
}

/* Whether the frame in the memory was at the same instruction when the copy was made; true if there is none. */
static bool is_at_same(const struct sampled_process *process, const struct stack_memory *memory, enum copy copy, uint64_t address)
{
    const struct interpreter_layout *layout = &process->layout;
    const char *now = stack_memory_frame(memory, layout, address);
    const char *then = copy == COPY_BEFORE ? stack_memory_before(memory, address)
                                           : stack_memory_beside(memory, address, layout->frame_bytes);
    return now && (!then || key_of_instruction(layout, then) == key_of_instruction(layout, now));
}

/* One that has ended may still note the frame that was around it. */
static bool has_paused(const struct sampled_process *process, const struct stack_memory *memory, enum copy copy, uint64_t address)
{
    const char *state = stack_memory_state(memory, copy == COPY_BEFORE, address);
    return state && (uint8_t)*state != (uint8_t)process->layout.coroutine_runs;
}

/* From the frame of a generator that runs, outward. */
static struct branch branch_from(const struct sampled_process *process, const struct stack_memory *memory, enum copy copy,
                                 uint64_t address)
{
    const struct interpreter_layout *layout = &process->layout;
    struct branch branch = {.innermost = address};
    char one[FRAME_BYTES_AT_MOST];
    while (is_elsewhere(process, memory, address)) {
        const char *frame = frame_elsewhere(process, memory, copy, address, one);
        bool is_generator = frame && frame_owner_of(layout, frame) == layout->frame_of_generator;
        if (!frame || branch.count++ == FRAMES_AT_MOST)
            return (struct branch){0};
        if (is_generator ? has_paused(process, memory, copy, address) : branch.count == 1)
            return (struct branch){0};
        address = frame_around(process, memory, address, frame);
    }
    branch.root = address;
    return address && is_at_same(process, memory, copy, address) ? branch : (struct branch){0};
}

/* Of two, the one with more frames. If the innermost frame may have ended, another one has resumed the generator. */
static struct branch longer(struct branch one, struct branch other, struct innermost innermost)
{
    bool fits = other.count && (!innermost.is_open || other.root == innermost.address);
    return fits && other.count > one.count ? other : one;
}

static struct branch find_before(const struct sampled_process *process, const struct stack_memory *memory,
                                 struct innermost innermost)
{
    struct branch found = {0};
    for (unsigned index = 0; index < memory->beside.frames; index++)
        if (stack_memory_before(memory, memory->beside.piece[index].address))
            found = longer(found, branch_from(process, memory, COPY_BEFORE, memory->beside.piece[index].address), innermost);
    return found;
}

static struct branch find_after(const struct sampled_process *process, const struct stack_memory *memory,
                                struct innermost innermost)
{
    struct branch found = branch_from(process, memory, COPY_AFTER, memory->innermost_after);
    found = longer((struct branch){0}, found, innermost);
    found = longer(found, branch_from(process, memory, COPY_AFTER, memory->innermost), innermost);
    for (unsigned index = 0; index < memory->beside.frames; index++)
        found = longer(found, branch_from(process, memory, COPY_AFTER, memory->beside.piece[index].address), innermost);
    return found;
}

/* Whether a generator that was not read then was the innermost one, and one that ran was not. */
static bool is_unknown_before(const struct sampled_process *process, const struct stack_memory *memory)
{
    return !memory->is_late && is_elsewhere(process, memory, memory->innermost) && !stack_memory_before(memory, memory->innermost);
}

static bool is_unknown_after(const struct sampled_process *process, const struct stack_memory *memory)
{
    return is_elsewhere(process, memory, memory->innermost_after) &&
           !stack_memory_beside(memory, memory->innermost_after, process->layout.frame_bytes);
}

static struct running_generators in_branch(struct branch branch, enum copy copy)
{
    return (struct running_generators){.innermost = branch.innermost, .copy = copy};
}

/* Whether the frame around it has called it: it may be about to end. */
static bool has_been_called(const struct sampled_process *process, const struct stack_memory *memory, uint64_t address)
{
    const struct interpreter_layout *layout = &process->layout;
    const char *frame = stack_memory_frame(memory, layout, address);
    const char *around = stack_memory_frame(memory, layout, word_at(frame, layout->frame_bytes, layout->frame_previous));
    return around && (!layout->frame_depth || half_word_at(around, layout->frame_bytes, layout->frame_depth) != UINT32_MAX);
}

/* What ran within the frame that is the root of these branches, or could be. */
static struct running_generators generators_at(struct sampled_process *process, const struct stack_memory *memory,
                                               struct innermost root, struct branch before, struct branch after)
{
    struct resumptions *resumptions = &process->resumptions;
    struct running_generators none = {0}, unknown = {.are_unknown = true};
    uint64_t key = key_of_instruction(&process->layout, stack_memory_frame(memory, &process->layout, root.address));
    enum resumption_sort sort = resumption_sort_of(resumptions, key);
    bool unknown_before = is_unknown_before(process, memory), unknown_after = is_unknown_after(process, memory);
    bool is_alone = memory->innermost == root.address && memory->innermost_after == root.address;
    if (before.count && after.count)
        resumption_note_generator(resumptions, key);
    if (before.count)
        return in_branch(before, COPY_BEFORE);
    if (after.count)
        return sort == RESUMES_ONLY || !root.is_open ? in_branch(after, COPY_AFTER) : none;
    if (!root.is_open && sort != RESUMES_NOTHING && resumption_is_known(resumptions, key))
        return unknown;
    if (is_alone)
        resumption_note_alone(resumptions, key);
    bool counts = unknown_before ? sort != RESUMES_NOTHING : unknown_after && sort == RESUMES_ONLY;
    return counts ? unknown : none;
}

struct running_generators generators_within(struct sampled_process *process, const struct stack_memory *memory,
                                            struct innermost innermost)
{
    struct running_generators unknown = {.are_unknown = true};
    struct branch before = find_before(process, memory, innermost), after = find_after(process, memory, innermost);
    bool was_innermost = is_unknown_before(process, memory) && after.innermost == memory->innermost;
    if (!before.count && was_innermost)
        before = after;
    struct branch any = before.count ? before : after;
    bool is_innermost = !any.count || any.root == innermost.address;
    struct innermost root = is_innermost ? innermost : (struct innermost){.address = any.root};
    if (!root.address)
        return is_unknown_before(process, memory) || is_unknown_after(process, memory) ? unknown : (struct running_generators){0};
    if (!any.count && !innermost.is_open && !has_been_called(process, memory, root.address))
        return unknown;
    return generators_at(process, memory, root, before, after);
}
