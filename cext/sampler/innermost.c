#include "sampler/innermost.h"

/* The innermost frame is known from before and from after the frames were read. Functions that take microseconds begin and end in
   between: the frames themselves tell which of them were alive. A frame that has called a Python function notes how many values
   it has on its stack, and its callee's frame follows its own (up to CPython 3.13); or the code of a frame that has ended is 0.
   A function that ran in between may have overwritten that frame. Its caller is most likely a frame of the previous sample.
   While a generator runs, the memory after its caller's frame is left over from an earlier call. */

enum { FRAMES_AT_MOST = 128, WORD_BYTES = sizeof(uint64_t) };

/* Frames in the memory, from a deep one outward; those of a function that C code called are another chain. */
struct chain {
    uint64_t address[FRAMES_AT_MOST];
    const char *frame[FRAMES_AT_MOST];
    unsigned count;
};

static bool is_entry(const struct interpreter_layout *layout, const char *frame)
{
    return layout->frame_entry && layout->frame_entry < layout->frame_bytes && frame[layout->frame_entry];
}

/* False if another frame has overwritten it. A frame that has ended still counts if its caller's frame is there. */
static bool is_frame(struct sampled_process *process, const char *frame, const char *around)
{
    const struct interpreter_layout *layout = &process->layout;
    uint64_t code = frame_code_of(layout, frame), place = word_at(frame, layout->frame_bytes, layout->frame_place);
    return code ? codes_has(process, code, place) : !layout->frame_depth && around;
}

/* Where the frame of the function that this one calls is; 0 if this one has ended. */
static uint64_t end_of(const struct sampled_process *process, uint64_t address, const char *frame)
{
    uint64_t code = frame_code_of(&process->layout, frame);
    return code ? address + process->layout.frame_bytes + codes_room(&process->codes, code) * (uint64_t)WORD_BYTES : 0;
}

bool is_called_from(const struct sampled_process *process, const struct stack_memory *memory, uint64_t address, uint64_t inner)
{
    const char *frame = stack_memory_frame(memory, &process->layout, address);
    return frame && end_of(process, address, frame) == inner;
}

/* Whether the frame is of another code object than was known, which has taken the address of that one. */
static bool is_of_another(struct sampled_process *process, const struct stack_memory *memory, const char *frame)
{
    uint64_t code = frame_code_of(&process->layout, frame);
    return code && codes_again(process, code, stack_memory_beside(memory, code, process->layout.code_bytes));
}

static bool ends_at(struct sampled_process *process, const struct stack_memory *memory, uint64_t address, const char *frame,
                    uint64_t end)
{
    bool is_end = end_of(process, address, frame) == end;
    return is_end || (is_of_another(process, memory, frame) && end_of(process, address, frame) == end);
}

/* False if it is none, or frames of several instants. */
static bool find_chain(struct sampled_process *process, const struct stack_memory *memory, uint64_t innermost, struct chain *chain)
{
    const struct interpreter_layout *layout = &process->layout;
    uint64_t address = innermost, inner = 0;
    const char *frame = stack_memory_frame(memory, layout, address);
    chain->count = 0;
    while (frame && chain->count < FRAMES_AT_MOST) {
        uint64_t around = word_at(frame, layout->frame_bytes, layout->frame_previous);
        const char *frame_around = stack_memory_frame(memory, layout, around);
        if (!is_frame(process, frame, frame_around) || (inner && !ends_at(process, memory, address, frame, inner)))
            return false;
        chain->address[chain->count] = address;
        chain->frame[chain->count++] = frame;
        if (is_entry(layout, frame))
            return true;
        inner = address;
        frame = frame_around;
        address = around;
    }
    return chain->count > 0;
}

static bool has_address(const struct chain *chain, uint64_t address)
{
    unsigned index = 0;
    while (index < chain->count && chain->address[index] != address)
        index++;
    return index < chain->count;
}

static bool has_called(const struct interpreter_layout *layout, const char *frame)
{
    return half_word_at(frame, layout->frame_bytes, layout->frame_depth) != UINT32_MAX;
}

/* Whether the frame had certainly not ended: up to CPython 3.13 because it was running itself. */
static bool is_open(const struct interpreter_layout *layout, const char *frame)
{
    return layout->frame_depth ? !has_called(layout, frame) : frame_code_of(layout, frame) != 0;
}

static bool is_alive(const struct interpreter_layout *layout, const char *frame, const char *around)
{
    return is_open(layout, frame) || (layout->frame_depth && has_called(layout, around));
}

/* The last frame that is alive, from the outermost one inward. */
static uint64_t last_alive(const struct interpreter_layout *layout, const struct chain *chain)
{
    unsigned index = chain->count - 1;
    while (index > 0 && is_alive(layout, chain->frame[index - 1], chain->frame[index]))
        index--;
    return chain->address[index];
}

/* The frame at the end of the one at the address, if that one has called it, or C code that it has called; or 0. It may be over. */
static uint64_t frame_at_end(struct sampled_process *process, const struct stack_memory *memory, uint64_t address)
{
    const struct interpreter_layout *layout = &process->layout;
    const char *frame = stack_memory_frame(memory, layout, address);
    uint64_t inner = frame ? end_of(process, address, frame) : 0;
    const char *callee = stack_memory_frame(memory, layout, inner);
    uint64_t around = callee ? word_at(callee, layout->frame_bytes, layout->frame_previous) : 0;
    bool is_called = around == address && (!layout->frame_depth || has_called(layout, frame));
    bool is_called_by_c = callee && around && (is_entry(layout, callee) || !stack_memory_frame(memory, layout, around));
    return (is_called || is_called_by_c) && is_frame(process, callee, frame) ? inner : 0;
}

/* As frame_at_end; if that finds none, with the code object that is there now. */
static uint64_t frame_after(struct sampled_process *process, const struct stack_memory *memory, uint64_t address)
{
    const char *frame = stack_memory_frame(memory, &process->layout, address);
    uint64_t inner = frame_at_end(process, memory, address);
    return inner || !frame || !is_of_another(process, memory, frame) ? inner : frame_at_end(process, memory, address);
}

/* From this frame inward, the innermost that had certainly not ended. If there is none, the innermost of all: it is about to end,
   or has called a generator. */
static uint64_t innermost_from(struct sampled_process *process, const struct stack_memory *memory, uint64_t address)
{
    const struct interpreter_layout *layout = &process->layout;
    uint64_t open = 0, innermost = address;
    for (unsigned steps = 0; address && steps < FRAMES_AT_MOST; steps++) {
        innermost = address;
        if (is_open(layout, stack_memory_frame(memory, layout, address)))
            open = address;
        address = frame_after(process, memory, address);
    }
    return open ? open : innermost;
}

/* The innermost frame, found from `address` outward; 0 if there is no valid frame, or `needed` is not in its chain. */
static uint64_t innermost_by(struct sampled_process *process, const struct stack_memory *memory, uint64_t address, uint64_t needed)
{
    struct chain chain;
    if (!find_chain(process, memory, address, &chain) || (needed && !has_address(&chain, needed)))
        return 0;
    return innermost_from(process, memory, last_alive(&process->layout, &chain));
}

static struct innermost as_innermost(struct sampled_process *process, const struct stack_memory *memory, uint64_t found)
{
    const struct interpreter_layout *layout = &process->layout;
    return (struct innermost){found, found && is_open(layout, stack_memory_frame(memory, layout, found))};
}

bool waits_below_c(struct sampled_process *process, const struct stack_memory *memory, uint64_t address)
{
    const struct interpreter_layout *layout = &process->layout;
    struct chain chain;
    if (!layout->frame_depth || !find_chain(process, memory, address, &chain))
        return false;
    unsigned index = 0;
    while (index < chain.count && has_called(layout, chain.frame[index]))
        index++;
    return index == chain.count;
}

/* By the frames of the last time, from the outermost one inward: most likely that one is still there. */
static struct innermost innermost_by_last(struct sampled_process *process, const struct stack_memory *memory,
                                          const struct last_frames *last)
{
    uint64_t found = 0;
    for (unsigned index = last->count; !found && index > 0; index--)
        found = innermost_by(process, memory, last->address[index - 1], 0);
    return as_innermost(process, memory, found);
}

struct innermost innermost_frame(struct sampled_process *process, const struct stack_memory *memory,
                                 const struct last_frames *last)
{
    uint64_t before = memory->innermost, after = memory->innermost_after;
    uint64_t deeper = before > after ? before : after, other = before > after ? after : before;
    uint64_t tried[] = {deeper, other, deeper}, needed[] = {other, 0, 0};
    struct innermost likely = {0};
    for (unsigned index = 0; index < sizeof tried / sizeof *tried; index++) {
        struct innermost found = as_innermost(process, memory, innermost_by(process, memory, tried[index], needed[index]));
        if (found.is_open)
            return found;
        likely = likely.address ? likely : found;
    }
    struct innermost found = innermost_by_last(process, memory, last);
    return found.is_open || !likely.address ? found : likely;
}
