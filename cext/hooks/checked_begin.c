#include "hooks/checked_begin.h"

#include "hooks/filtering.h"
#include "hooks/hot_path.h"
#include "hooks/trace_headers.h"

/* The slot alone says of which kind the call is, and nobody needs to know of it. */
static bool is_simple(const struct slot *slot)
{
    return !slot->traffic && !slot->choice && !slot->effect && !slot->asks && slot->moves != MOVES_frame;
}

bool is_timed(const struct slot *slot, uint32_t intrinsic)
{
    return slot_level(slot, intrinsic - slot->intrinsic) == LEVEL_time || is_always_timed(slot);
}

static bool is_lowered(const struct slot *slot, uint32_t intrinsic)
{
    return slot_lowered(slot) && !is_timed(slot, intrinsic);
}

static bool is_chosen_from(void)
{
    return filter_is_on() || chosen.one_in;
}

static bool is_screen(const struct descriptor *known)
{
    return known && known->kind == KIND_screen;
}

bool begin_untimed(struct call *call, struct thread *thread, uint32_t intrinsic)
{
    if (slot_level(call->slot, intrinsic - call->slot->intrinsic) == LEVEL_count)
        recorder_count(thread, intrinsic);
    call->span.thread = NULL;
    return call->slot->effect != EFFECT_none || call->terminal;
}

/* Nor does a call that the filter excludes, except what the terminal shows by it. */
static bool begin_left_out(struct call *call)
{
    call->span.thread = NULL;
    return call->slot->effect != EFFECT_none || call->terminal;
}

bool is_left_out_behind(const struct slot *slot, PyObject *const *arguments, Py_ssize_t count)
{
    if (!slot->traffic || slot->subject >= count || !PyLong_CheckExact(arguments[slot->subject]))
        return false;
    int number = value_of_digit(arguments[slot->subject]);
    if (number < 0 || number >= DESCRIPTORS_KNOWN)
        return false;
    struct descriptor known = descriptor_now(&descriptors[number]);
    bool is_plain = known.known && (known.kind == KIND_file || (known.kind == KIND_screen && !recorder.dialogue));
    return is_plain && is_left_out(slot->intrinsic + slot->kinds[known.kind]);
}

/* Its number is known. `passes`: calls of another kind pass. */
static bool begin_described(struct call *call, struct thread *thread, PyThreadState *state, uint32_t intrinsic, bool passes)
{
    const struct slot *slot = call->slot;
    if (recorder.dialogue)
        terminal_begin(call);
    if (is_lowered(slot, intrinsic))
        return begin_untimed(call, thread, intrinsic);
    if (is_chosen_from() && !is_simple(slot) && !passes_late(slot, intrinsic, passes))
        return begin_left_out(call) && (call->terminal || !slot->traffic || is_network(call->known));
    if (!begin_timed(call, thread, state, intrinsic))
        return false;
    if (slot->request & REQUEST_traced)
        keep_context(call, &call->span);
    return true;
}

static bool begin_checked_traffic(struct call *call, struct thread *thread, PyThreadState *state, bool passes)
{
    const struct slot *slot = call->slot;
    uint32_t intrinsic = slot->intrinsic + describe_traffic(call, thread);
    bool left_out = is_chosen_from() && (!passes || is_left_out(intrinsic)) && !is_network(call->known);
    if (left_out && !(keeps_dialogue(slot) && is_screen(call->known)))
        return false;
    return begin_described(call, thread, state, intrinsic, passes);
}

bool begin_checked(struct call *call, struct thread *thread, PyThreadState *state)
{
    const struct slot *slot = call->slot;
    bool simple = is_simple(slot);
    if (simple && is_lowered(slot, slot->intrinsic))
        return begin_untimed(call, thread, slot->intrinsic);
    bool passes = !is_chosen_from() || passes_early(slot, slot->intrinsic, simple, thread, state);
    if (!passes && slot->effect == EFFECT_none && !is_always_timed(slot) && !keeps_dialogue(slot))
        return begin_left_out(call);
    if (slot->traffic)
        return begin_checked_traffic(call, thread, state, passes);
    if (passes_through(call, thread))
        return false;
    if (slot->effect >= EFFECT_serve)
        return begin_serving(call, thread, state);
    return begin_described(call, thread, state, slot->intrinsic + describe_other(call, thread), passes);
}
