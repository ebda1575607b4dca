#include "hooks/open_calls.h"

#include <string.h>

#include "core/transaction_sampling.h"

uint8_t number_kinds[NUMBERS_KNOWN];

void number_is_of(uint32_t number, enum kind kind)
{
    if (number < NUMBERS_KNOWN)
        number_kinds[number] = (uint8_t)(kind + 1);
}

void forget_number_kinds(void)
{
    memset(number_kinds, 0, sizeof number_kinds);
}

bool is_serving(const struct thread *thread)
{
    uint32_t depth = thread->record->fields.depth;
    for (uint32_t index = depth < OPEN_CALLS ? depth : OPEN_CALLS; index > 0; index--)
        if (thread->record->open[index - 1].call && is_number_of(thread->record->open[index - 1].intrinsic, KIND_logic))
            return true;
    return false;
}

bool find_open(struct span *span, struct thread *thread, uint32_t intrinsic, uint32_t detail, uint32_t lowest)
{
    const struct thread_record *record = thread->record;
    for (uint32_t index = record->fields.depth; index-- > lowest;) {
        const struct open_call *open = &record->open[index];
        if (open->call && is_number_or_further(open->intrinsic, intrinsic) && (detail == any_detail || open->detail == detail)) {
            *span = (struct span){.thread = thread, .begin = {open->start_ns, open->start_cpu_ns}, .index = index,
                                  .call = open->call, .intrinsic = open->intrinsic, .stack = open->stack,
                                  .detail = open->detail};
            return true;
        }
    }
    return false;
}

uint32_t place_in_table(const struct thread_record *record, uint32_t call)
{
    for (uint32_t index = record->fields.depth; index-- > 0;)
        if (record->open[index].call == call)
            return index;
    return OPEN_CALLS;
}
