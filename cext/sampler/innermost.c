#include "sampler/innermost.h"

#include "sampler/remote.h"

/* The innermost frame is known from before and from after the frames were read. Functions that take microseconds begin and end in
   between: the frames themselves tell which of them were alive. A frame that has called a Python function notes how many values
   it has on its stack, and its callee's frame follows its own (up to CPython 3.13); or the code of a frame that has ended is 0. */

enum { FRAMES_AT_MOST = 128, CODE_HEAD_BYTES = 512, WORD_BYTES = sizeof(uint64_t) };

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

/* False if it is none: memory of a frame that has ended may have been overwritten. */
static bool find_chain(const struct interpreter_layout *layout, const struct stack_memory *memory, uint64_t innermost,
                       struct chain *chain)
{
    uint64_t address = innermost;
    const char *frame = stack_memory_frame(memory, layout, address);
    chain->count = 0;
    while (frame && chain->count < FRAMES_AT_MOST) {
        chain->address[chain->count] = address;
        chain->frame[chain->count++] = frame;
        uint64_t around = word_at(frame, layout->frame_bytes, layout->frame_previous);
        if (is_entry(layout, frame))
            return true;
        frame = stack_memory_frame(memory, layout, around);
        if (frame && around >= address)
            return false;
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

static bool is_alive(const struct interpreter_layout *layout, const char *frame, const char *around)
{
    return layout->frame_depth ? has_called(layout, around) : frame_code_of(layout, frame) != 0;
}

/* The index of the last frame that is alive, from the outermost one inward. */
static unsigned last_alive(const struct interpreter_layout *layout, const struct chain *chain)
{
    unsigned index = chain->count - 1;
    while (index > 0 && is_alive(layout, chain->frame[index - 1], chain->frame[index]))
        index--;
    return index;
}

/* How long a frame of that code is; 0 if unknown. */
static uint64_t bytes_of_frame(pid_t pid, const struct interpreter_layout *layout, const struct stack_memory *memory, uint64_t code)
{
    char read_now[CODE_HEAD_BYTES];
    const char *head = stack_memory_beside(memory, code, layout->code_bytes);
    if (!layout->code_stack || layout->code_bytes > sizeof read_now ||
        (!head && !remote_read(pid, code, read_now, layout->code_bytes)))
        return 0;
    head = head ? head : read_now;
    uint64_t words = half_word_at(head, layout->code_bytes, layout->code_variables);
    words += half_word_at(head, layout->code_bytes, layout->code_stack);
    return layout->frame_bytes + words * WORD_BYTES;
}

/* The frame of the function that this one has called, or 0. */
static uint64_t callee_of(pid_t pid, const struct interpreter_layout *layout, const struct stack_memory *memory, uint64_t address)
{
    const char *frame = stack_memory_frame(memory, layout, address);
    if (!frame || (layout->frame_depth && !has_called(layout, frame)))
        return 0;
    uint64_t bytes = bytes_of_frame(pid, layout, memory, frame_code_of(layout, frame));
    const char *callee = bytes ? stack_memory_frame(memory, layout, address + bytes) : NULL;
    bool is_callee = callee && word_at(callee, layout->frame_bytes, layout->frame_previous) == address;
    return is_callee && is_alive(layout, callee, frame) ? address + bytes : 0;
}

uint64_t innermost_frame(pid_t pid, const struct interpreter_layout *layout, const struct stack_memory *memory)
{
    uint64_t before = memory->innermost, after = memory->innermost_after, innermost, callee;
    uint64_t deeper = before > after ? before : after, other = before > after ? after : before;
    struct chain chain;
    if (!stack_memory_frame(memory, layout, deeper) || !stack_memory_frame(memory, layout, other))
        return before; /* a generator's is elsewhere */
    bool is_known = find_chain(layout, memory, deeper, &chain) && has_address(&chain, other);
    if (!is_known && !find_chain(layout, memory, other, &chain))
        return before;
    innermost = chain.address[last_alive(layout, &chain)];
    callee = innermost == other ? callee_of(pid, layout, memory, innermost) : 0;
    return callee ? callee : innermost;
}
