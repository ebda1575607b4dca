#include "hooks/filtering.h"

#include "kinds.h"
#include "core/transaction_sampling.h"
#include "cpython/sites.h"
#include "hooks/call.h"
#include "hooks/descriptors.h"
#include "hooks/filtered_places.h"
#include "hooks/filtered_stacks.h"
#include "hooks/open_calls.h"
#include "hooks/stubs.h"

/* The rules besides those about the intrinsic; each class only if it has rules. */
static bool is_let_pass(struct thread *thread, PyThreadState *state)
{
    if (!filter_says(&filter.looks))
        return true;
    if (filter_says(&filter.by_block) && filter_block_is_over(recorder.control))
        return false;
    if (filter_says(&filter.by_thread) && !filter_thread(thread))
        return false;
    if (filter_says(&filter.by_time) && !filter_time())
        return false;
    if (filter_says(&filter.by_site) && !site_passes(state))
        return false;
    if (filter_says(&filter.by_transaction) && !filter_transaction(thread->record))
        return false;
    return !filter_says(&filter.by_within) || within_passes(state);
}

/* May a call of that intrinsic be recorded? What starts processes is, for descendants are followed by it. */
static bool passes_filter(const struct slot *slot, uint32_t intrinsic, struct thread *thread, PyThreadState *state)
{
    if (is_always_timed(slot))
        return true;
    if (is_left_out(intrinsic) || !is_let_pass(thread, state))
        return false;
    return !filter_says(&filter.by_block) || filter_block(recorder.control);
}

bool passes_late(const struct slot *slot, uint32_t intrinsic, bool passed)
{
    if (is_always_timed(slot))
        return true;
    return passed && !is_left_out(intrinsic) && (!filter_says(&filter.by_block) || filter_block(recorder.control));
}

bool transaction_passes(const struct slot *slot, struct thread *thread, PyThreadState *state)
{
    if (filter_says(&filter.by_transaction) || slot->sampled)
        return !filter_says(&filter.none);
    return passes_filter(slot, slot->intrinsic, thread, state);
}

bool passes_early(const struct slot *slot, uint32_t intrinsic, bool simple, struct thread *thread, PyThreadState *state)
{
    if (slot->sampled)
        return !filter_is_on() || transaction_passes(slot, thread, state);
    if (chosen.one_in && !is_always_timed(slot) && is_passed_over(thread))
        return false;
    if (!filter_is_on())
        return true;
    return simple ? passes_filter(slot, intrinsic, thread, state) : is_let_pass(thread, state);
}

/* All of its calls, of whatever kind they turn out to be, except those numbered `but`. */
static bool is_closed(const struct slot *slot, uint32_t but)
{
    for (uint32_t number = slot->intrinsic; number < slot->intrinsic + slot->numbers; number++)
        if (number != but && !is_left_out(number))
            return false;
    return true;
}

static enum watched how_to_watch(const struct slot *slot)
{
    bool changes = slot->lock || (slot->effect != EFFECT_none && !slot->traffic);
    if ((!filter_is_on() && !chosen.one_in) || slot->sampled || !slot->through || !slot->numbers || changes || keeps_dialogue(slot))
        return WATCHED_not;
    if (is_closed(slot, 0))
        return WATCHED_closed;
    if (slot->kinds[KIND_db] && is_closed(slot, slot->intrinsic + slot->kinds[KIND_db]))
        return WATCHED_outside_db;
    return filter_says(&filter.looks) || chosen.one_in ? WATCHED_look : WATCHED_not;
}

void slot_watch(struct slot *slot)
{
    uint8_t before = slot_watched(slot);
    if (before == WATCHED_unfit)
        return;
    uint8_t how = (uint8_t)how_to_watch(slot);
    if (before != how) /* a forked child writes, and copies, as little as can be */
        __atomic_compare_exchange_n(&slot->watched, &before, how, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool is_left_out_at_once(const struct slot *slot)
{
    enum watched how = slot_watched(slot);
    if (how == WATCHED_unfit)
        return true;
    if (slot->effect != EFFECT_none && __atomic_load_n(&networks_known, __ATOMIC_RELAXED))
        return false;
    if (how == WATCHED_closed)
        return true;
    PyThreadState *state = recorded_state();
    struct thread *thread = state ? current_thread : NULL;
    if (!thread_records(thread) || thread->quiet)
        return false;
    if (how == WATCHED_outside_db)
        return !inside(thread, KIND_db);
    if (UNLIKELY(chosen.one_in) && !thread->marked && is_passed_over(thread))
        return true;
    if (filter_says(&filter.only_within))
        return !within_passes(state);
    return filter_is_on() && !is_let_pass(thread, state);
}

void slots_watch(void)
{
    slots_each(slot_watch);
}
