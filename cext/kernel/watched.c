#define _GNU_SOURCE
#include "kernel/watched.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernel/system_calls.h"

/* --- processes and threads */

struct watched_process *watched_process_of(const struct watched *watched, uint32_t pid)
{
    struct watched_process *found = watched->processes;
    while (found && (found->pid != pid || found->has_ended))
        found = found->next;
    return found;
}

static struct watched_thread *thread_of(const struct watched *watched, uint32_t tid)
{
    uint32_t place = numbers_find(&watched->threads, tid);
    return place ? watched->thread[place - 1] : NULL;
}

struct watched_process *watched_begin(struct watched *watched, uint32_t pid, uint32_t parent, uint64_t time_ns)
{
    struct watched_process *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->pid = pid;
    made->parent = parent;
    made->status = STATUS_UNKNOWN;
    made->begun_ns = made->end_ns = time_ns;
    made->files.events = made->files.threads = -1;
    made->next = watched->processes;
    watched->processes = made;
    return made;
}

/* A place for the thread, by its number in the kernel, which may have been another one's. */
static bool keep_place(struct watched *watched, struct watched_thread *thread)
{
    uint32_t place = numbers_find(&watched->threads, thread->tid);
    if (place) {
        watched->thread[place - 1] = thread;
        return true;
    }
    if (watched->used == watched->room) {
        uint32_t room = watched->room ? 2 * watched->room : 64;
        struct watched_thread **larger = realloc(watched->thread, room * sizeof *larger);
        if (!larger)
            return false;
        watched->thread = larger;
        watched->room = room;
    }
    watched->thread[watched->used++] = thread;
    return numbers_keep(&watched->threads, thread->tid, watched->used);
}

struct watched_thread *watched_thread_begin(struct watched *watched, struct watched_process *process, uint32_t tid,
                                            enum thread_state state, uint64_t time_ns)
{
    struct watched_thread *made = calloc(1, sizeof *made);
    if (!made)
        return NULL;
    made->tid = tid;
    made->process = process;
    made->state = state;
    made->last_ns = time_ns;
    made->in_call = made->found_in = NO_CALL;
    if (!keep_place(watched, made)) {
        free(made);
        return NULL;
    }
    made->number = ++process->numbers;
    made->record.fields = (struct thread_fields){.start_ns = time_ns, .tid = tid, .main = tid == process->pid};
    made->next = process->threads;
    process->threads = made;
    return made;
}

/* --- a thread's clocks */

/* What the kernel counts itself; 0 if it does not say, or the thread has ended. */
static uint64_t counted_cpu_ns(const struct watched_thread *thread)
{
    char path[64];
    uint64_t cpu_ns = 0;
    snprintf(path, sizeof path, "/proc/%u/task/%u/schedstat", thread->process->pid, thread->tid);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%" SCNu64, &cpu_ns) != 1)
        cpu_ns = 0;
    if (file)
        fclose(file);
    return cpu_ns;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Up to a note that says since when it is in its present state; one that is late changes nothing. */
static void pass(struct watched_thread *thread, uint64_t time_ns, bool was_away)
{
    uint64_t passed_ns = time_ns > thread->last_ns ? time_ns - thread->last_ns : 0;
    thread->last_ns += passed_ns;
    if (thread->state == RUNS || (thread->state == UNSURE && !was_away)) {
        thread->cpu_ns += passed_ns;
        thread->process->cpu_ns += passed_ns;
    } else if (thread->state == READY) {
        thread->record.fields.run_delay_ns += passed_ns;
        thread->process->delay_ns += passed_ns;
    }
}

/* Take over what the kernel had counted then: more than our notes have, where some were lost. */
static void correct(struct watched_thread *thread)
{
    uint64_t missing_ns = thread->correct_ns > thread->cpu_ns ? thread->correct_ns - thread->cpu_ns : 0;
    thread->corrected_ns = 0;
    thread->cpu_ns += missing_ns;
    thread->process->cpu_ns += missing_ns;
}

static void advance(struct watched_thread *thread, uint64_t time_ns, bool was_away)
{
    if (thread->corrected_ns && time_ns >= thread->corrected_ns) {
        pass(thread, thread->corrected_ns, was_away);
        correct(thread);
    }
    pass(thread, time_ns, was_away);
    thread->record.fields.seen_ns = thread->last_ns;
    thread->record.fields.end_cpu_ns = thread->cpu_ns;
    thread->process->end_ns = thread->last_ns > thread->process->end_ns ? thread->last_ns : thread->process->end_ns;
}

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
    memcpy(thread->argument, note->argument, sizeof thread->argument);
    thread->record.fields.depth = thread->is_recorded;
    thread->record.fields.made += thread->is_recorded;
}

static void close_call(struct watched_thread *thread)
{
    thread->in_call = NO_CALL;
    thread->record.fields.depth = 0;
}

static void drop_call(struct watched_thread *thread)
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
        drop_call(thread);
        return;
    }
    uint64_t wall_ns = thread->last_ns - open->start_ns, cpu_ns = thread->cpu_ns - open->start_cpu_ns;
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

/* They may refer to something else since then, and no call says so: another program has lost those that close by themselves. */
static void forget_descriptors(struct watched_process *process, uint64_t since_ns)
{
    descriptors_close_range(&process->descriptors, &process->texts, 0, UINT64_MAX, since_ns);
}

/* --- notes of a thread */

static bool ends_the_thread(const struct watched_process *process, int64_t number)
{
    return !process->has_other_numbers && (number == SYS_exit || number == SYS_exit_group);
}

static enum kind kind_of(const struct system_call *call, enum kind of_descriptor)
{
    return call->kind == BY_DESCRIPTOR ? of_descriptor : (enum kind)call->kind;
}

static void enter(const struct watched *watched, struct watched_thread *thread, const struct note *note)
{
    struct watched_process *process = thread->process;
    const struct system_call *call = call_of(process, note->number);
    struct known_descriptor about = {.kind = KIND_COUNT};
    drop_call(thread); /* its end was lost */
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

void watched_thread_was_there(struct watched_thread *thread)
{
    thread->cpu_before_ns = counted_cpu_ns(thread);
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

/* The call that it was found in counts from the beginning of watching. Where notes tell of an earlier time, they say themselves
   what it was in then. */
static void resume_found(const struct watched *watched, struct watched_thread *thread, uint64_t time_ns, bool enters)
{
    struct note found = {.number = thread->found_in};
    bool was_in_it = thread->found_in != NO_CALL && time_ns > thread->found_ns && !enters;
    thread->found_in = NO_CALL;
    memcpy(found.argument, thread->argument, sizeof found.argument);
    if (was_in_it)
        enter(watched, thread, &found);
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

static void leave(const struct watched *watched, struct watched_thread *thread, const struct note *note)
{
    if (!is_end_of(thread, note)) {
        drop_call(thread);
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

static void forget_thread(struct watched *watched, struct watched_thread *thread)
{
    struct watched_thread **before = &thread->process->threads;
    uint32_t place = numbers_find(&watched->threads, thread->tid);
    while (*before != thread)
        before = &(*before)->next;
    *before = thread->next;
    if (place && watched->thread[place - 1] == thread) /* the number may be another thread's by now */
        watched->thread[place - 1] = NULL;
    free(thread);
}

/* A call that it was in ended with it. */
static void end_thread(struct watched *watched, struct watched_thread *thread)
{
    struct kernel_files *files = &thread->process->files;
    if (thread->in_call != NO_CALL)
        end_call(thread, 0, 0);
    thread->record.fields.end_ns = thread->last_ns;
    kernel_thread_write(files, thread->number, &thread->record);
    if (thread->block)
        kernel_block_leave(files, thread->block);
    forget_thread(watched, thread);
}

/* --- notes of a process */

/* Another program has one thread, with the process's number: the one that asked for it may have had another. */
static void become(struct watched *watched, struct watched_thread *thread, const struct note *note)
{
    struct watched_process *process = thread->process;
    memcpy(process->name, note->name, sizeof process->name);
    free(process->path);
    process->path = NULL;
    process->is_new = true;
    code_map_forget(&process->code);
    forget_descriptors(process, thread->record.open[0].start_ns);
    for (struct watched_thread *each = process->threads, *next; each; each = next) {
        next = each->next;
        if (each != thread)
            end_thread(watched, each);
    }
}

/* Where the kernel has no path (`//toolong`), the beginning of its name remains. */
static enum wanted name_program(struct watched_process *named, const char *path, struct watched_process **process)
{
    named->path = path[1] == '/' ? NULL : strdup(path);
    watched_program_was_there(named, path);
    named->is_new = false;
    *process = named;
    return PROGRAM;
}

static enum wanted map_file(const struct watched *watched, struct watched_process *mapped, const struct note *note,
                            struct watched_process **process)
{
    if (watched->has_stacks)
        code_map_add(&mapped->code, note->argument[0], note->argument[1], (uint64_t)note->number, note->path);
    return mapped->is_new ? name_program(mapped, note->path, process) : NOTHING;
}

/* A forked child has mapped what its parent has. */
static void copy_code(struct code_map *to, const struct code_map *from)
{
    for (size_t place = 0; place < from->mappings; place++) {
        const struct mapping *each = &from->mapping[place];
        code_map_add(to, each->begin, each->end - each->begin, each->offset, each->path);
    }
}

static enum wanted begin_another(struct watched *watched, const struct note *note, struct watched_process **process)
{
    struct watched_process *parent = watched_process_of(watched, note->parent);
    if (note->pid == note->parent && parent) {
        watched_thread_begin(watched, parent, note->tid, READY, note->time_ns);
        return NOTHING;
    }
    *process = watched_begin(watched, note->pid, note->parent, note->time_ns);
    if (!*process)
        return NOTHING;
    if (parent) {
        descriptors_copy(&(*process)->descriptors, &parent->descriptors);
        memcpy((*process)->name, parent->name, sizeof parent->name);
        (*process)->has_other_numbers = parent->has_other_numbers;
        (*process)->path = parent->path ? strdup(parent->path) : NULL;
        copy_code(&(*process)->code, &parent->code);
    }
    watched_thread_begin(watched, *process, note->tid, READY, note->time_ns);
    return PLACE;
}

/* False if it has ended. */
static bool ask_kernel(struct watched_thread *thread)
{
    uint64_t cpu_ns = counted_cpu_ns(thread);
    thread->corrected_ns = now_ns();
    thread->correct_ns = cpu_ns > thread->cpu_before_ns ? cpu_ns - thread->cpu_before_ns : 0;
    return cpu_ns > 0;
}

/* Nothing is known of it until its next note. Of one that has ended meanwhile nobody knows what it did since its last note:
   that was its end. */
static void lose_thread(struct watched *watched, struct watched_thread *thread)
{
    drop_call(thread);
    thread->state = UNSURE;
    thread->is_outside = false;
    if (!ask_kernel(thread))
        end_thread(watched, thread);
}

/* Notes of anybody. */
static void lose(struct watched *watched, const struct note *note)
{
    uint64_t lost = (uint64_t)note->result;
    for (struct watched_process *process = watched->processes; process; process = process->next) {
        if (process->has_ended)
            continue;
        process->lost += lost;
        forget_descriptors(process, note->since_ns);
        for (struct watched_thread *thread = process->threads, *next; thread; thread = next) {
            next = thread->next;
            lose_thread(watched, thread);
        }
    }
}

static enum wanted end_of_thread(struct watched *watched, struct watched_thread *thread, struct watched_process **process)
{
    *process = thread->process;
    end_thread(watched, thread);
    if ((*process)->threads)
        return NOTHING;
    (*process)->has_ended = true;
    return END;
}

static void begin_late(struct watched *watched, struct watched_process *process, const struct note *note)
{
    struct watched_thread *thread = watched_thread_begin(watched, process, note->tid, UNSURE, note->time_ns);
    if (thread)
        watched_thread_was_there(thread);
}

/* One that was never heard of: it was there before, or the note of its beginning was lost. */
static enum wanted find_late(struct watched *watched, const struct note *note, struct watched_process **process)
{
    struct watched_process *known = watched_process_of(watched, note->pid);
    *process = known ? known : watched_begin(watched, note->pid, 0, note->time_ns);
    if (*process)
        begin_late(watched, *process, note);
    return known || !*process ? NOTHING : PLACE;
}

static enum wanted take(struct watched *watched, struct watched_thread *thread, const struct note *note,
                        struct watched_process **process)
{
    resume_found(watched, thread, note->time_ns, note->kind == NOTE_ENTER);
    advance(thread, note->time_ns, note->kind == NOTE_IN);
    switch (note->kind) {
    case NOTE_IN:
        thread->state = RUNS;
        return NOTHING;
    case NOTE_OUT:
        thread->state = WAITS;
        return NOTHING;
    case NOTE_TAKEN:
        thread->state = READY;
        return NOTHING;
    case NOTE_ENDS:
        return end_of_thread(watched, thread, process);
    default:
        thread->state = RUNS;
    }
    if (note->kind == NOTE_ENTER)
        enter(watched, thread, note);
    else if (note->kind == NOTE_EXIT)
        leave(watched, thread, note);
    else if (note->kind == NOTE_BECOMES)
        become(watched, thread, note);
    else if (note->kind == NOTE_MAPS)
        return map_file(watched, thread->process, note, process);
    return NOTHING;
}

enum wanted watched_take(struct watched *watched, const struct note *note, struct watched_process **process)
{
    if (note->kind == NOTE_LOST) {
        lose(watched, note);
        return NOTHING;
    }
    if (note->kind == NOTE_BEGINS)
        return begin_another(watched, note, process);
    struct watched_thread *thread = thread_of(watched, note->tid);
    if (!thread && note->kind == NOTE_ENDS)
        return NOTHING;
    enum wanted wanted = thread ? NOTHING : find_late(watched, note, process);
    thread = thread ? thread : thread_of(watched, note->tid);
    if (!thread)
        return NOTHING;
    enum wanted then = take(watched, thread, note, process);
    return wanted ? wanted : then;
}

/* --- writing */

void watched_write(struct watched *watched)
{
    for (struct watched_process *process = watched->processes; process; process = process->next) {
        for (struct watched_thread *thread = process->threads; thread; thread = thread->next) {
            if (thread->block)
                kernel_block_write(&process->files, thread->block);
            kernel_thread_write(&process->files, thread->number, &thread->record);
        }
    }
}

/* The calls that its threads are in stay in their records. */
static void leave_threads(struct watched *watched, struct watched_process *process, uint64_t now_ns)
{
    while (process->threads) {
        struct watched_thread *thread = process->threads;
        resume_found(watched, thread, now_ns, false);
        advance(thread, now_ns, thread->state == UNSURE);
        kernel_thread_write(&process->files, thread->number, &thread->record);
        if (thread->block)
            kernel_block_leave(&process->files, thread->block);
        forget_thread(watched, thread);
    }
}

void watched_leave(struct watched *watched, struct watched_process *process, uint64_t now_ns)
{
    leave_threads(watched, process, now_ns);
    kernel_files_end(&process->files);
}

void watched_forget(struct watched *watched, struct watched_process *process)
{
    struct watched_process **place = &watched->processes;
    while (*place != process)
        place = &(*place)->next;
    *place = process->next;
    texts_free(&process->texts);
    descriptors_free(&process->descriptors);
    kernel_stacks_free(&process->stacks);
    code_map_forget(&process->code);
    free(process->path);
    free(process);
}
