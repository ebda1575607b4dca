#include "sampler/native_code.h"

#include <string.h>

#include "sampler/stacks.h"

enum { NO_FUNCTION = UINT32_MAX }; /* code that is not told apart */

static uint32_t new_site(struct sampled_process *process, const struct native_function *function)
{
    const char *name = *function->name ? function->name : object_name(function->path);
    struct site site = {
        .file = tables_string(&process->tables, function->path, strlen(function->path)),
        .function = tables_string(&process->tables, name, strlen(name)),
        .own = function->is_of_program,
    };
    return tables_site(&process->tables, &site);
}

/* The site of the function at the address; NO_FUNCTION if it is none that is told apart. */
static uint32_t site_at(struct sampled_process *process, uint32_t tid, uint64_t address)
{
    struct native_code *native = &process->native;
    struct native_function function;
    bool is_new;
    if (objects_read_again(&native->objects, (pid_t)tid, process->layout.runtime)) /* a library may be where another one was */
        met_forget(&native->functions);
    uint32_t site = met_find(&native->functions, address);
    if (site)
        return site;
    bool is_known = objects_find(&native->objects, (pid_t)tid, process->layout.runtime, address, &function, &is_new);
    if (is_new)
        met_forget(&native->functions);
    if (!is_known)
        return NO_FUNCTION;
    site = function.path ? new_site(process, &function) : NO_FUNCTION;
    met_keep(&native->functions, (struct met_function){function.begin, function.end, site});
    return site;
}

/* --- samples */

bool native_code_is_same(const struct asked *asked, uint64_t mark)
{
    return mark && asked->count && asked->count < ASKED_AT_MOST && asked->mark == mark;
}

/* The one that has only waited for the longest time, and could be noted; NULL if none has. */
static struct sampled_thread *longest_waiting(struct sampled_process *process)
{
    struct sampled_thread *found = NULL;
    for (uint32_t index = 0; index < process->thread_count; index++) {
        struct sampled_thread *thread = &process->threads[index];
        if (thread->instructions.notes && thread->waited > (found ? found->waited : 0))
            found = thread;
    }
    return found;
}

/* Have the kernel note where the thread executes, and wake the sampler. */
static void begin_notes(struct sampled_process *process, struct sampled_thread *thread)
{
    struct sampled_thread *other = instructions_are_left() ? NULL : longest_waiting(process);
    if (thread->is_refused || thread->switches.are_frequent || (!other && !instructions_are_left()))
        return;
    if (other)
        instructions_end(&other->instructions);
    thread->instructions = instructions_begin(thread->tid);
    thread->is_refused = !thread->instructions.notes;
    if (thread->instructions.notes && !waking_add(process->waking, thread->instructions.event, thread->tid))
        instructions_end(&thread->instructions);
}

/* Python code is soon elsewhere, unless it was not between two samples. In other programs a while decides by chance where the note is
   made: one that has lost its processor was often interrupted as it asked for the time. Where notes are made outside of the kernel
   only, a while would often end in another function than one that is mostly in the kernel. */
static enum note_after when_to_note(const struct sampled_process *process, const struct sampled_thread *thread)
{
    if (has_interpreter(process) ? thread->asked.count > 0 : thread->instructions.sees_kernel)
        return AFTER_A_WHILE;
    return thread->last.off_ns && !has_interpreter(process) ? AFTER_RESUMING : AFTER_AN_INSTANT;
}

bool native_code_ask(struct sampled_process *process, struct sampled_thread *thread, uint64_t mark, const struct taken *taken)
{
    struct asked *asked = &thread->asked;
    uint64_t earlier;
    if (mark && !thread->instructions.notes)
        begin_notes(process, thread);
    if (!thread->instructions.notes || !mark)
        return false;
    if (!asked->count)
        instructions_take(&thread->instructions, &earlier); /* made for a sample before this one, and not yet looked at */
    if (!asked->count || thread->instructions.is_ordered)
        instructions_order(&thread->instructions, when_to_note(process, thread));
    asked->taken[asked->count++] = *taken;
    asked->mark = mark;
    return true;
}

static bool has_not_moved(struct sampled_process *process, struct sampled_thread *thread)
{
    if (!has_interpreter(process))
        return true; /* the note was made as soon as the thread was seen on a processor */
    struct found_stack stack = stack_of(process, thread);
    return !stack.torn && stack.mark == thread->asked.mark;
}

void native_code_tell(struct sampled_process *process, struct sampled_thread *thread)
{
    uint64_t address;
    struct asked *asked = &thread->asked;
    if (!instructions_take(&thread->instructions, &address) || !asked->count || !asked->mark)
        return;
    uint32_t site = has_not_moved(process, thread) ? site_at(process, thread->tid, address) : NO_FUNCTION;
    uint32_t stack = site != NO_FUNCTION ? tables_stack(&process->tables, site, asked->taken[0].sample.stack, false) : 0;
    for (unsigned index = 0; stack && index < asked->count; index++)
        asked->taken[index].sample.stack = stack;
    asked->mark = 0;
}

void native_code_forget(struct native_code *native)
{
    met_forget(&native->functions);
    objects_forget(&native->objects);
    *native = (struct native_code){0};
}
