#include "hooks/without_lock.h"

#include "core/filter.h"
#include "core/transaction_sampling.h"

static bool passes_filter(const struct thread *thread, uint32_t intrinsic)
{
    if (is_left_out(intrinsic) || filter_says(&filter.by_block))
        return false;
    if ((filter_says(&filter.by_site) || filter_says(&filter.by_within)) && thread->record->fields.depth == 0)
        return false;
    if (filter_says(&filter.by_thread) && !filter_thread(thread))
        return false;
    return (!filter_says(&filter.by_time) || filter_time()) && (!filter_says(&filter.by_transaction) || filter_transaction(thread->record));
}

/* Requests from outside are handled at the next call by a thread with the lock. */
bool is_recorded_now(const struct thread *thread, uint32_t intrinsic)
{
    if (thread->quiet || thread->own_depth || recorder.interval_ns || (uint32_t)said_from_outside())
        return false;
    if (chosen.one_in && is_passed_over(thread))
        return false;
    return !filter_is_on() || passes_filter(thread, intrinsic);
}
