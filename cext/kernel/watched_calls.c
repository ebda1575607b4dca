#define _GNU_SOURCE
#include "kernel/watched_calls.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/system_calls.h"

/* --- programs of 32 bits */

/* It may be something else by now, which must not be waited for. */
static bool is_of_32_bits(const char *path)
{
    unsigned char head[EI_NIDENT] = {0};
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool is_read = file >= 0 && read(file, head, sizeof head) == sizeof head;
    if (file >= 0)
        close(file);
    return is_read && memcmp(head, ELFMAG, SELFMAG) == 0 && head[EI_CLASS] == ELFCLASS32;
}

void watched_program_was_there(struct watched_process *process, const char *path)
{
    process->has_other_numbers = sizeof(void *) > 4 && is_of_32_bits(path);
}

/* Of a number that means another call there, nothing is known. */
static const struct system_call *call_of(const struct watched_process *process, int64_t number)
{
    return system_call_of(process->has_other_numbers ? -1 : number);
}

/* --- calls */

static struct event *place_for_event(struct watched_thread *thread)
{
    struct kernel_files *files = &thread->process->files;
    if (!thread->process->is_placed || files->failed)
        return NULL;
    if (!thread->block)
        thread->block = kernel_block_take(files, thread->number);
    struct held_block *block = thread->block;
    if (block && block->is.head.used == BLOCK_EVENTS) /* the thread that left it may have filled it */
        kernel_block_write(files, block);
    return block ? &block->is.events[block->is.head.used] : NULL;
}

static void count_event(struct watched_thread *thread, const struct event *event)
{
    struct held_block *block = thread->block;
    struct block_head *head = &block->is.head;
    uint64_t end_ns = event->start_ns + event->wall_ns;
    head->first_ns = event->start_ns < head->first_ns ? event->start_ns : head->first_ns;
    head->last_ns = end_ns > head->last_ns ? end_ns : head->last_ns;
    head->used++;
    block->has_changed = true;
    thread->record.fields.recorded++;
}

static uint32_t add_frame(struct watched_process *process, uint64_t address, uint32_t outer, bool is_cut)
{
    pid_t pid = (pid_t)process->pid;
    uint32_t site = code_map_site(&process->code, &process->texts, &process->stacks, pid, process->path, address);
    uint32_t stack = site ? kernel_stack(&process->stacks, site, outer, is_cut && !outer) : 0;
    return stack ? stack : outer;
}

/* The stack of the functions that led to the call, as far as they are known; else that of the program. The kernel finds callers by
   frames, and the innermost function, one of the C library mostly, has none: its caller is where the stack says that it returns to. */
static uint32_t stack_of(struct watched_process *process, const struct note *note)
{
    uint32_t stack = 0;
    bool is_cut = note->frames == FRAMES_AT_MOST;
    for (unsigned place = note->frames; place > 1; place--)
        stack = add_frame(process, note->frame[place - 1] - 1, stack, is_cut); /* what called is before where it returns to */
    bool is_missing = note->frames && note->top != (note->frames > 1 ? note->frame[1] : 0);
    if (is_missing && code_map_is_return(&process->code, (pid_t)process->pid, note->top))
        stack = add_frame(process, note->top - 1, stack, false);
    stack = note->frames ? add_frame(process, note->frame[0], stack, false) : stack;
    return stack ? stack : process->stack;
}

static void begin_call(struct watched_thread *thread, const struct note *note, uint32_t intrinsic, uint32_t detail)
{
    struct open_call *open = &thread->record.open[0];
    *open = (struct open_call){
        .start_ns = thread->last_ns,
        .start_cpu_ns = thread->cpu_ns,
        .call = ++thread->calls,
        .intrinsic = intrinsic,
        .stack = stack_of(thread->process, note),
        .detail = detail,
    };
    thread->in_call = note->number;
    thread->is_outside = false;
    thread->own_in_call_ns = 0;
    memcpy(thread->argument, note->argument, sizeof thread->argument);
    thread->record.fields.depth = thread->is_recorded;
    thread->record.fields.made += thread->is_recorded;
}

static void close_call(struct watched_thread *thread)
{
    thread->in_call = NO_CALL;
    thread->record.fields.depth = 0;
}

void call_drop(struct watched_thread *thread)
{
    if (thread->in_call == NO_CALL)
        return;
    thread->record.fields.dropped += thread->is_recorded;
    close_call(thread);
}

static void end_call(struct watched_thread *thread, uint64_t bytes, uint32_t error)
{
    const struct open_call *open = &thread->record.open[0];
    struct event *event = thread->is_recorded ? place_for_event(thread) : NULL;
    if (!event) {
        call_drop(thread);
        return;
    }
    uint64_t wall_ns = thread->last_ns - open->start_ns - thread->own_in_call_ns;
    uint64_t cpu_ns = thread->cpu_ns - open->start_cpu_ns - thread->own_in_call_ns;
    *event = (struct event){
        .start_ns = open->start_ns,
        .start_cpu_ns = open->start_cpu_ns,
        .wall_ns = wall_ns,
        .cpu_ns = cpu_ns < wall_ns ? cpu_ns : wall_ns,
        .bytes = bytes,
        .thread = thread->number,
        .call = open->call,
        .intrinsic = open->intrinsic,
        .stack = open->stack,
        .detail = open->detail,
        .error = error,
    };
    count_event(thread, event);
    close_call(thread);
}

/* --- what calls do to descriptors */

static bool is_about_descriptor(const struct system_call *call)
{
    return call->kind == BY_DESCRIPTOR || call->effect == USES || call->effect == CLOSES;
}

static void change_descriptors(const struct watched_thread *thread, const struct system_call *call, int64_t result)
{
    struct watched_process *process = thread->process;
    struct known_descriptors *known = &process->descriptors;
    const uint64_t *argument = thread->argument, begun_ns = thread->record.open[0].start_ns;
    switch (call->effect) {
    case CLOSES:
        descriptors_close(known, &process->texts, (int32_t)argument[0], begun_ns);
        break;
    case TAKES:
        descriptors_close(known, &process->texts, (int32_t)argument[1], begun_ns);
        break;
    case RANGE:
        descriptors_close_range(known, &process->texts, (uint32_t)argument[0], (uint32_t)argument[1], begun_ns);
        break;
    case OPENS:
        descriptors_close(known, &process->texts, result, begun_ns);
        descriptors_open(known, result, call->kind == KIND_file || call->kind == KIND_net ? call->kind : KIND_COUNT);
        descriptor_of(known, &process->texts, (pid_t)thread->tid, result);
        break;
    default:
        break;
    }
}

void process_forget_descriptors(struct watched_process *process, uint64_t since_ns)
{
    descriptors_close_range(&process->descriptors, &process->texts, 0, UINT64_MAX, since_ns);
}

/* --- notes of a thread */

static bool ends_the_thread(const struct watched_process *process, int64_t number)
{
    return !process->has_other_numbers && (number == SYS_exit || number == SYS_exit_group);
}

bool call_is_exec(const struct watched_thread *thread)
{
    return !thread->process->has_other_numbers && (thread->in_call == SYS_execve || thread->in_call == SYS_execveat);
}

static enum kind kind_of(const struct system_call *call, enum kind of_descriptor)
{
    return call->kind == BY_DESCRIPTOR ? of_descriptor : (enum kind)call->kind;
}

void call_enter(const struct watched *watched, struct watched_thread *thread, const struct note *note)
{
    struct watched_process *process = thread->process;
    const struct system_call *call = call_of(process, note->number);
    struct known_descriptor about = {.kind = KIND_COUNT};
    call_drop(thread); /* its end was lost */
    if (ends_the_thread(process, note->number)) {
        if (note->number == SYS_exit_group || (thread == process->threads && !thread->next))
            process->status = (int)(note->argument[0] & 0xff);
        return;
    }
    if (is_about_descriptor(call))
        about = descriptor_of(&process->descriptors, &process->texts, (pid_t)thread->tid, (int32_t)note->argument[0]);
    thread->is_recorded = watched->kinds >> kind_of(call, about.kind) & 1;
    begin_call(thread, note, system_call_intrinsic(call, about.kind), about.detail);
}

void watched_thread_found(struct watched_thread *thread, const struct note *note)
{
    struct watched_process *process = thread->process;
    if (is_about_descriptor(call_of(process, note->number)))
        descriptor_of(&process->descriptors, &process->texts, (pid_t)thread->tid, (int32_t)note->argument[0]);
    thread->found_in = note->number;
    thread->found_ns = note->time_ns;
    memcpy(thread->argument, note->argument, sizeof thread->argument);
    thread->state = WAITS;
}

void call_resume_found(const struct watched *watched, struct watched_thread *thread, uint64_t time_ns, bool enters)
{
    struct note found = {.number = thread->found_in};
    bool was_in_it = thread->found_in != NO_CALL && time_ns > thread->found_ns && !enters;
    thread->found_in = NO_CALL;
    memcpy(found.argument, thread->argument, sizeof found.argument);
    if (was_in_it)
        call_enter(watched, thread, &found);
}

static bool returns_from_handler(const struct watched_thread *thread, const struct note *note)
{
    return thread->process->has_other_numbers ? note->number < 0 : thread->in_call == SYS_rt_sigreturn;
}

/* What the kernel calls its end: a return from a handler has no number any longer. */
static bool is_end_of(const struct watched_thread *thread, const struct note *note)
{
    return thread->in_call != NO_CALL && (thread->in_call == note->number || returns_from_handler(thread, note));
}

/* Of a call that a filter (seccomp) refuses, the kernel notes nothing but the end. */
static void count_refused(const struct watched *watched, struct watched_thread *thread, const struct note *note)
{
    const struct system_call *call = call_of(thread->process, note->number);
    thread->is_recorded = watched->kinds >> kind_of(call, KIND_file) & 1;
    begin_call(thread, note, system_call_intrinsic(call, KIND_file), 0);
    end_call(thread, 0, note->result < 0 ? text_of_error(-note->result) : 0);
}

void call_leave(const struct watched *watched, struct watched_thread *thread, const struct note *note)
{
    if (!is_end_of(thread, note)) {
        call_drop(thread);
        if (thread->is_outside && note->number >= 0)
            count_refused(watched, thread, note);
        thread->is_outside = true;
        return;
    }
    const struct system_call *call = call_of(thread->process, thread->in_call);
    bool has_result = !returns_from_handler(thread, note), has_failed = has_result && note->result < 0 && note->result > -4096;
    if (!has_failed)
        change_descriptors(thread, call, note->result);
    uint64_t bytes = has_result && call->result == BYTES && note->result > 0 ? (uint64_t)note->result : 0;
    end_call(thread, bytes, has_failed ? text_of_error(-note->result) : 0);
    thread->is_outside = true;
}

void call_end_with_thread(struct watched_thread *thread)
{
    if (thread->in_call != NO_CALL)
        end_call(thread, 0, 0);
}
