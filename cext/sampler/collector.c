#include "sampler/collector.h"

#include "sampler/remote.h"

/* Whether the interpreter collects garbage in this thread, which then has the interpreter's lock. Where there are several threads, that
   is not known: a finalizer may wait in one of them, and let another one compute. */
static bool collects(const struct sampled_process *process, const struct sampled_thread *thread)
{
    uint32_t is_collecting = 0;
    uint64_t holder = 0;
    const struct remote_piece pieces[] = {
        {process->layout.collecting, &is_collecting, sizeof is_collecting},
        {process->layout.lock_holder, &holder, sizeof holder},
    };
    bool may_be_another = process->thread_count > 1;
    bool is_known = process->layout.collecting && !may_be_another && remote_read_pieces(process->reached, pieces, 2) == 2;
    return is_known && is_collecting && holder == thread->address;
}

uint32_t collector_below(struct sampled_process *process, const struct sampled_thread *thread, uint32_t stack)
{
    static const char name[] = "Python's garbage collector";
    if (!collects(process, thread))
        return stack;
    uint32_t text = tables_string(&process->tables, name, sizeof name - 1);
    uint32_t site = tables_site(&process->tables, &(struct site){.file = text, .function = text});
    return tables_stack(&process->tables, site, stack, false);
}
