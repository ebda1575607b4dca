#include "kernel/watched.h"

#include <stdlib.h>
#include <string.h>

#include "kernel/thread_clock.h"
#include "kernel/watched_calls.h"

enum {
    ASKS_EVERY_NS = 100 * 1000, /* about one thread or another; asking takes a tenth of that */
    SHORT_GAP_NS = 20 * 1000 * 1000,
};

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
    made->switch_ns = watched->costs.switch_ns;
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
    thread_pay_all(thread);
    call_end_with_thread(thread);
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
    process_forget_descriptors(process, thread->record.open[0].start_ns);
    if (!call_is_exec(thread))
        watched_thread_was_there(thread); /* another thread has taken over this one's number */
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

/* Its state is unknown until its next note. If it has ended meanwhile, there may be none. */
static void lose_thread(struct watched_thread *thread)
{
    bool is_there = thread_ask_kernel_after_loss(thread);
    call_drop(thread);
    thread->state = is_there ? UNSURE : WAITS;
    thread->is_cut = !is_there;
    thread->gone_ns = is_there ? 0 : thread->asked.until_ns;
    thread->is_outside = false;
}

/* Notes of anybody. */
static void lose(struct watched *watched, const struct note *note)
{
    uint64_t lost = (uint64_t)note->result;
    for (struct watched_process *process = watched->processes; process; process = process->next) {
        if (process->has_ended)
            continue;
        process->has_lost = true;
        process->lost += lost;
        process_forget_descriptors(process, note->since_ns);
        for (struct watched_thread *thread = process->threads; thread; thread = thread->next)
            lose_thread(thread);
    }
}

static void end_gone(struct watched *watched, struct watched_process *process, uint64_t until_ns)
{
    for (struct watched_thread *thread = process->threads, *next; thread; thread = next) {
        next = thread->next;
        if (thread->gone_ns && thread->gone_ns < until_ns)
            end_thread(watched, thread);
    }
}

void watched_end_gone(struct watched *watched, uint64_t until_ns)
{
    for (struct watched_process *process = watched->processes; process; process = process->next)
        end_gone(watched, process, until_ns);
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

/* If a thread has ended, what it did while notes were lost is unknown. A long gap is left out: what follows counts as another
   thread. */
static bool has_gap(const struct watched_thread *thread, const struct note *note)
{
    return thread->is_cut && note->time_ns > thread->last_ns + SHORT_GAP_NS;
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
    thread->is_cut = false;
    call_resume_found(watched, thread, note->time_ns, note->kind == NOTE_ENTER);
    thread_advance(watched, thread, note->time_ns, note->kind);
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
        call_enter(watched, thread, note);
    else if (note->kind == NOTE_EXIT)
        call_leave(watched, thread, note);
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
    bool is_apart = thread && has_gap(thread, note);
    if (note->kind == NOTE_ENDS && (!thread || is_apart))
        return thread ? end_of_thread(watched, thread, process) : NOTHING;
    if (is_apart) {
        end_thread(watched, thread);
        thread = NULL;
    }
    enum wanted wanted = thread ? NOTHING : find_late(watched, note, process);
    thread = thread ? thread : thread_of(watched, note->tid);
    if (!thread)
        return NOTHING;
    enum wanted then = take(watched, thread, note, process);
    return wanted ? wanted : then;
}

void watched_ask_kernel(struct watched *watched, uint64_t now_ns)
{
    uint64_t not_since_ns = now_ns - watched->asked * ASKS_EVERY_NS;
    watched->asked = 0;
    for (struct watched_process *process = watched->processes; process; process = process->next)
        for (struct watched_thread *thread = process->threads; thread; thread = thread->next, watched->asked++)
            thread_ask_kernel(thread, not_since_ns);
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
        call_resume_found(watched, thread, now_ns, false);
        thread_advance(watched, thread, now_ns, 0);
        thread_pay_all(thread);
        kernel_thread_write(&process->files, thread->number, &thread->record);
        if (thread->block)
            kernel_block_leave(&process->files, thread->block);
        forget_thread(watched, thread);
    }
}

void watched_leave(struct watched *watched, struct watched_process *process, uint64_t now_ns)
{
    end_gone(watched, process, now_ns);
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
