#include "sampler/generators.h"

/* A generator runs if its state says so, and its frame notes the one around it. While the memory is read, a generator of
   microseconds begins or ends: it may have run before and not after, or the other way round. Then the frame that resumed it
   decides. If that frame has moved on to another instruction, no generator ran. Otherwise one that ran before counts. One that ran
   only after counts if samples have shown that the instruction only resumes generators, or if the frame may have ended: C code that
   also works by itself, as `executemany` does, is at the same instruction all the time. */

enum { FRAMES_AT_MOST = 128 };

/* Frames that are elsewhere, and the one that resumed the outermost of them. */
struct branch {
    uint64_t innermost, root;
    unsigned count; /* 0: there is none */
};

/* What was read, and which frames of `beside` the search has already visited. */
struct search {
    struct sampled_process *process;
    const struct stack_memory *memory;
    struct innermost innermost;
    enum copy copy;
    bool is_passed[BESIDE_AT_MOST];
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
                      const char *frame, uint64_t inner)
{
    const struct interpreter_layout *layout = &process->layout;
    uint64_t known = beside_around(&memory->beside, address), now = word_at(frame, layout->frame_bytes, layout->frame_previous);
    bool is_overwritten = frame_owner_of(layout, frame) < layout->frame_no_code ||
                          (inner && is_called_from(process, memory, known, inner) && !is_called_from(process, memory, now, inner));
    return known && is_overwritten ? known : now;
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

/* Whether the frame has the code of a generator. Once a generator has ended, its memory may hold something else. */
static bool is_generator(struct sampled_process *process, const char *frame)
{
    size_t bytes = process->layout.frame_bytes;
    uint64_t place = word_at(frame, bytes, process->layout.frame_place);
    return codes_has_generator(process, frame_code_of(&process->layout, frame), place);
}

/* One that has ended may still note the frame that was around it. */
static bool has_paused(const struct sampled_process *process, const struct stack_memory *memory, enum copy copy, uint64_t address)
{
    const char *state = stack_memory_state(memory, copy == COPY_BEFORE, address);
    return state && (uint8_t)*state != (uint8_t)process->layout.coroutine_runs;
}

static bool has_passed(struct search *search, uint64_t address)
{
    const struct beside *beside = &search->memory->beside;
    unsigned index = 0;
    while (index < beside->frames && beside->piece[index].address != address)
        index++;
    if (index < beside->frames)
        search->is_passed[index] = true;
    return index < beside->frames;
}

/* Whether it ran when the interpreter's note of the innermost frame was read, right before this copy. */
static bool was_innermost(const struct search *search, uint64_t address)
{
    return search->copy == COPY_BEFORE && !search->memory->is_late && address == search->memory->innermost;
}

/* Where a branch goes on outside of what was read with the others, mostly far outside, where nothing changes: the frame in the chunk that
   it leads to. 0: unknown. */
static uint64_t root_outside(const struct search *search, uint64_t address)
{
    char one[FRAME_BYTES_AT_MOST];
    for (unsigned steps = 0; steps < FRAMES_AT_MOST && is_elsewhere(search->process, search->memory, address); steps++) {
        const char *frame = frame_elsewhere(search->process, search->memory, search->copy, address, one);
        address = frame ? frame_around(search->process, search->memory, address, frame, 0) : 0;
    }
    return is_elsewhere(search->process, search->memory, address) ? 0 : address;
}

/* From the frame of a generator that runs, outward, to the frame in the chunk that has resumed it. */
static struct branch branch_from(struct search *search, uint64_t address)
{
    const struct interpreter_layout *layout = &search->process->layout;
    struct branch none = {0}, branch = {.innermost = address};
    char one[FRAME_BYTES_AT_MOST];
    while (is_elsewhere(search->process, search->memory, address)) {
        if (!has_passed(search, address) && branch.count)
            break;
        const char *frame = frame_elsewhere(search->process, search->memory, search->copy, address, one);
        bool of_generator = frame && frame_owner_of(layout, frame) == layout->frame_of_generator;
        if (!frame || branch.count++ == BESIDE_AT_MOST)
            return none;
        bool has_just_run = was_innermost(search, address);
        bool is_paused = has_paused(search->process, search->memory, search->copy, address);
        if (of_generator ? (is_paused && !has_just_run) || !is_generator(search->process, frame) : branch.count == 1)
            return none;
        address = frame_around(search->process, search->memory, address, frame, 0);
        if (!address && has_just_run)
            address = search->innermost.address;
    }
    branch.root = address = root_outside(search, address);
    return address && is_at_same(search->process, search->memory, search->copy, address) ? branch : none;
}

/* The longer of two branches. A frame other than the innermost one may have resumed the generator in two cases: the innermost one
   may have ended, or it has called C code that called the other frame. */
static struct branch longer(const struct search *search, struct branch one, struct branch other)
{
    if (other.count <= one.count)
        return one;
    bool is_within = !search->innermost.is_open || other.root == search->innermost.address;
    bool is_deeper = other.root > search->innermost.address && waits_below_c(search->process, search->memory, other.root);
    return is_within || is_deeper ? other : one;
}

/* Of those that are beside the frames. */
static struct branch longest_of_known(struct search *search, struct branch found)
{
    const struct beside *beside = &search->memory->beside;
    for (unsigned index = 0; index < beside->frames; index++) {
        bool is_read = search->copy == COPY_AFTER || stack_memory_before(search->memory, beside->piece[index].address);
        if (is_read && !search->is_passed[index])
            found = longer(search, found, branch_from(search, beside->piece[index].address));
    }
    return found;
}

/* By the interpreter's note of the innermost frame; else the longest one. */
static struct branch find_before(struct sampled_process *process, const struct stack_memory *memory,
                                 struct innermost innermost)
{
    struct search search = {.process = process, .memory = memory, .innermost = innermost, .copy = COPY_BEFORE};
    struct branch found = {0};
    if (stack_memory_before(memory, memory->innermost))
        found = longer(&search, found, branch_from(&search, memory->innermost));
    return found.count ? found : longest_of_known(&search, found);
}

static struct branch find_after(struct sampled_process *process, const struct stack_memory *memory,
                                struct innermost innermost)
{
    struct search search = {.process = process, .memory = memory, .innermost = innermost, .copy = COPY_AFTER};
    struct branch found = longer(&search, (struct branch){0}, branch_from(&search, memory->innermost_after));
    if (!found.count && memory->innermost != memory->innermost_after)
        found = longer(&search, found, branch_from(&search, memory->innermost));
    return found.count ? found : longest_of_known(&search, found);
}

/* Whether the innermost frame was elsewhere, and was not read in time. One on the C stack does not count: it is no generator's. */
static bool is_unknown_before(const struct sampled_process *process, const struct stack_memory *memory)
{
    bool is_of_c = beside_around(&memory->beside, memory->innermost);
    return !memory->is_late && !is_of_c && is_elsewhere(process, memory, memory->innermost) &&
           !stack_memory_before(memory, memory->innermost);
}

static bool is_unknown_after(const struct sampled_process *process, const struct stack_memory *memory)
{
    return is_elsewhere(process, memory, memory->innermost_after) &&
           !stack_memory_beside(memory, memory->innermost_after, process->layout.frame_bytes);
}

static struct running_generators in_branch(struct branch branch, enum copy copy)
{
    return (struct running_generators){.innermost = branch.innermost, .root = branch.root, .copy = copy};
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
    bool was_alone = !memory->is_late && memory->innermost == root.address;
    bool is_alone = memory->innermost == root.address && memory->innermost_after == root.address;
    if (before.count && after.count)
        resumption_note_generator(resumptions, key);
    if (before.count && !(sort == RESUMES_AND_WORKS && was_alone))
        return in_branch(before, COPY_BEFORE);
    if (after.count)
        return sort == RESUMES_ONLY || !root.is_open ? in_branch(after, COPY_AFTER) : none;
    if (!root.is_open && sort == RESUMES_ONLY)
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
    if (is_unknown_before(process, memory))
        before = after.innermost == memory->innermost ? after : (struct branch){0};
    struct branch any = before.count ? before : after;
    bool is_innermost = !any.count || any.root == innermost.address;
    struct innermost root = is_innermost ? innermost : (struct innermost){.address = any.root};
    if (!root.address)
        return is_unknown_before(process, memory) || is_unknown_after(process, memory) ? unknown : (struct running_generators){0};
    return generators_at(process, memory, root, before, after);
}
