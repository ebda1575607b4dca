#define _GNU_SOURCE
#include "kernel/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"

/* --- the kernel's records; the fields are those of sample_type and sample_id_all below */

struct identity {
    uint32_t pid, tid;
    uint64_t time_ns;
};

/* A sample, behind the frames if there are any. */
struct tracepoint_record {
    uint32_t raw_bytes;
    uint16_t type; /* the raw data: its head, and what the tracepoint has */
    uint8_t flags, preempted;
    int32_t common_pid;
    int64_t number;
    uint64_t argument[6]; /* or the result alone */
} __attribute__((packed));

struct task_record { /* PERF_RECORD_FORK, PERF_RECORD_EXIT */
    struct perf_event_header head;
    uint32_t pid, parent_pid, tid, parent_tid;
    uint64_t time_ns;
    struct identity of;
};

struct name_record { /* PERF_RECORD_COMM; the name takes a multiple of eight bytes, and the identity is behind it */
    struct perf_event_header head;
    uint32_t pid, tid;
    char name[NAME_BYTES];
};

struct map_record { /* PERF_RECORD_MMAP; the path takes a multiple of eight bytes, and the identity is behind it */
    struct perf_event_header head;
    uint32_t pid, tid;
    uint64_t address, bytes, offset;
    char path[PATH_BYTES];
};

struct lost_record {
    struct perf_event_header head;
    uint64_t id, lost;
    struct identity of;
};

struct sample_record {
    struct perf_event_header head;
    struct identity of;
    uint64_t frames;
    uint64_t frame[FRAMES_AT_MOST + 8]; /* and marks between them */
};

union record {
    struct perf_event_header head;
    struct sample_record sample;
    struct task_record task;
    struct name_record name;
    struct map_record map;
    struct lost_record lost;
    char bytes[PATH_BYTES + 128];
};

/* Of the registers one is asked for, and of the stack one word: where the innermost function returns to, if it has no frame. */
struct user_record {
    uint64_t sort; /* of the registers: 0: there are none */
    uint64_t value;
    uint64_t stack_bytes;
    uint64_t word;
};

#if defined(__x86_64__)
enum { USER_REGISTER = 7, STACK_WORD_BYTES = 8 }; /* PERF_REG_X86_SP, and what lies there */
#elif defined(__aarch64__)
enum { USER_REGISTER = 30, STACK_WORD_BYTES = 0 }; /* PERF_REG_ARM64_LR */
#else
enum { USER_REGISTER = 0, STACK_WORD_BYTES = 0 };
#endif

/* --- the events */

static struct perf_event_attr described(uint32_t type, uint64_t config)
{
    return (struct perf_event_attr){
        .type = type,
        .size = sizeof(struct perf_event_attr),
        .config = config,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
}

static int open_event(struct perf_event_attr *event, pid_t tid, int processor)
{
    return (int)syscall(SYS_perf_event_open, event, tid, processor, -1, PERF_FLAG_FD_CLOEXEC);
}

static int keep(struct rings *rings, int file)
{
    if (rings->count == rings->room) {
        size_t room = rings->room ? 2 * rings->room : 64;
        int *files = realloc(rings->files, room * sizeof *files);
        if (!files) {
            close(file);
            return ENOMEM;
        }
        rings->files = files;
        rings->room = room;
    }
    rings->files[rings->count++] = file;
    return 0;
}

/* --- the rings */

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static struct perf_event_mmap_page *page_of(const struct kernel_ring *ring)
{
    return ring->page;
}

/* An event that counts nothing owns it: threads come and go. */
static int open_ring(struct rings *rings, unsigned processor)
{
    struct perf_event_attr event = described(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
    int file = open_event(&event, -1, (int)processor);
    rings->ring[processor].owner = -1;
    if (file < 0)
        return errno == ENODEV ? 0 : errno; /* it is switched off */
    int failed = keep(rings, file);
    if (failed)
        return failed;
    void *page = mmap(NULL, page_bytes() + rings->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        return errno;
    rings->ring[processor].page = page;
    rings->ring[processor].owner = file;
    return 0;
}

int rings_begin(struct rings *rings, struct tracepoints tracepoints, size_t bytes, bool follows, bool has_stacks)
{
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    memset(rings, 0, sizeof *rings);
    rings->tracepoints = tracepoints;
    rings->bytes = bytes;
    rings->follows = follows;
    rings->has_stacks = has_stacks;
    rings->processors = processors > 0 ? (unsigned)processors : 1;
    rings->ring = calloc(rings->processors, sizeof *rings->ring);
    int failed = rings->ring ? 0 : ENOMEM;
    for (unsigned processor = 0; !failed && processor < rings->processors; processor++)
        failed = open_ring(rings, processor);
    rings->looked_ns = clock_ns(CLOCK_MONOTONIC);
    if (failed)
        rings_end(rings);
    return failed;
}

void rings_end(struct rings *rings)
{
    for (unsigned processor = 0; rings->ring && processor < rings->processors; processor++)
        if (rings->ring[processor].page)
            munmap(rings->ring[processor].page, page_bytes() + rings->bytes);
    for (size_t place = 0; place < rings->count; place++)
        close(rings->files[place]);
    free(rings->ring);
    free(rings->files);
    memset(rings, 0, sizeof *rings);
}

/* --- who is watched */

static int add_event(struct rings *rings, struct perf_event_attr *event, pid_t tid, unsigned processor)
{
    int file = open_event(event, tid, (int)processor);
    int failed = file < 0 ? errno : keep(rings, file);
    if (!failed && ioctl(file, PERF_EVENT_IOC_SET_OUTPUT, rings->ring[processor].owner))
        failed = errno;
    return failed;
}

int rings_add(struct rings *rings, pid_t tid, bool at_exec)
{
    struct perf_event_attr exit = described(PERF_TYPE_TRACEPOINT, rings->tracepoints.exit);
    exit.inherit = 1;
    exit.inherit_thread = !rings->follows && !at_exec; /* a child is to become it */
    exit.disabled = exit.enable_on_exec = at_exec;
    exit.sample_type |= rings->has_stacks ? PERF_SAMPLE_CALLCHAIN : 0;
    exit.exclude_callchain_kernel = 1;
    struct perf_event_attr enter = exit;
    exit.exclude_callchain_user = 1;
    if (rings->has_stacks) {
        enter.sample_max_stack = FRAMES_AT_MOST;
        enter.sample_type |= PERF_SAMPLE_REGS_USER | (STACK_WORD_BYTES ? PERF_SAMPLE_STACK_USER : 0);
        enter.sample_regs_user = 1ull << USER_REGISTER;
        enter.sample_stack_user = STACK_WORD_BYTES;
    }
    enter.config = rings->tracepoints.enter;
    enter.context_switch = enter.task = enter.comm = enter.comm_exec = enter.mmap = 1;
    int failed = 0;
    for (unsigned processor = 0; !failed && processor < rings->processors; processor++) {
        if (rings->ring[processor].owner < 0)
            continue;
        failed = add_event(rings, &enter, tid, processor);
        failed = failed ? failed : add_event(rings, &exit, tid, processor);
    }
    return failed;
}

/* --- what the kernel wrote */

static void copy_from(const struct rings *rings, const struct kernel_ring *ring, uint64_t from, void *into, size_t bytes)
{
    const char *first = (const char *)ring->page + page_bytes();
    size_t place = from & (rings->bytes - 1), left = rings->bytes - place;
    size_t before_end = bytes < left ? bytes : left;
    memcpy(into, first + place, before_end);
    memcpy((char *)into + before_end, first, bytes - before_end);
}

/* When the record at `from` was made: behind all others, the time stands last; in a sample, behind pid and tid. */
static uint64_t time_at(const struct rings *rings, const struct kernel_ring *ring)
{
    struct perf_event_header head;
    uint64_t time_ns;
    copy_from(rings, ring, ring->from, &head, sizeof head);
    size_t place = head.type == PERF_RECORD_SAMPLE ? sizeof head + sizeof(uint64_t) : head.size - sizeof time_ns;
    copy_from(rings, ring, ring->from + place, &time_ns, sizeof time_ns);
    return time_ns;
}

static void find_next(const struct rings *rings, struct kernel_ring *ring)
{
    ring->next_ns = ring->from < ring->end ? time_at(rings, ring) : UINT64_MAX;
}

/* Was there no room left for a record of the ordinary sort? */
static bool is_full(const struct rings *rings, const struct kernel_ring *ring)
{
    enum { ORDINARY_BYTES = 1024 };
    return ring->end - ring->from > rings->bytes - ORDINARY_BYTES;
}

void rings_look(struct rings *rings, bool is_last)
{
    rings->until_ns = is_last ? UINT64_MAX : rings->looked_ns;
    rings->looked_ns = clock_ns(CLOCK_MONOTONIC);
    for (unsigned processor = 0; processor < rings->processors; processor++) {
        struct kernel_ring *ring = &rings->ring[processor];
        if (ring->page)
            ring->end = __atomic_load_n(&page_of(ring)->data_head, __ATOMIC_ACQUIRE);
        ring->was_full |= is_full(rings, ring);
        rings->some_were_full |= ring->was_full;
        find_next(rings, ring);
    }
}

static struct kernel_ring *first_of(const struct rings *rings)
{
    struct kernel_ring *first = NULL;
    uint64_t first_ns = rings->until_ns;
    for (unsigned processor = 0; processor < rings->processors; processor++) {
        if (rings->ring[processor].next_ns < first_ns) {
            first = &rings->ring[processor];
            first_ns = first->next_ns;
        }
    }
    return first;
}

static void take_record(const struct rings *rings, struct kernel_ring *ring, union record *record)
{
    copy_from(rings, ring, ring->from, &record->head, sizeof record->head);
    size_t bytes = record->head.size < sizeof *record ? record->head.size : sizeof *record;
    copy_from(rings, ring, ring->from, record, bytes);
    ring->from += record->head.size ? record->head.size : ring->end - ring->from;
    __atomic_store_n(&page_of(ring)->data_tail, ring->from, __ATOMIC_RELEASE);
    find_next(rings, ring);
}

/* --- records as notes */

/* Those in user mode; the kernel marks what follows by numbers beyond all addresses. */
static void note_frames(struct rings *rings, const struct sample_record *record, struct note *note)
{
    uint64_t at_most = sizeof record->frame / sizeof *record->frame;
    for (uint64_t place = 0; place < record->frames && place < at_most && note->frames < FRAMES_AT_MOST; place++)
        if (record->frame[place] < (uint64_t)PERF_CONTEXT_MAX)
            rings->frame[note->frames++] = record->frame[place];
    note->frame = rings->frame;
}

/* It stands behind the raw data. */
static void note_top(const union record *sample, size_t at, struct note *note)
{
    struct user_record user;
    if (at + sizeof user > sizeof *sample || at + sizeof user > sample->head.size)
        return;
    memcpy(&user, sample->bytes + at, sizeof user);
    bool has_word = user.sort && STACK_WORD_BYTES && user.stack_bytes == STACK_WORD_BYTES;
    note->top = has_word ? user.word : user.sort && !STACK_WORD_BYTES ? user.value : 0;
}

static bool note_sample(struct rings *rings, const union record *sample, struct note *note)
{
    struct tracepoint_record record;
    size_t at = offsetof(struct sample_record, frames);
    if (rings->has_stacks)
        at += (1 + sample->sample.frames) * sizeof(uint64_t);
    if (at + sizeof record > sizeof *sample)
        return false;
    memcpy(&record, sample->bytes + at, sizeof record);
    bool enters = record.type == rings->tracepoints.enter;
    note->kind = enters ? NOTE_ENTER : NOTE_EXIT;
    note->number = record.number;
    note->result = (int64_t)record.argument[0];
    for (unsigned place = 0; enters && place < ARGUMENTS; place++)
        note->argument[place] = record.argument[place];
    if (enters && rings->has_stacks) {
        note_frames(rings, &sample->sample, note);
        note_top(sample, at + sizeof record.raw_bytes + record.raw_bytes, note);
    }
    return true;
}

static void note_task(const struct task_record *record, struct note *note)
{
    note->kind = record->head.type == PERF_RECORD_FORK ? NOTE_BEGINS : NOTE_ENDS;
    note->pid = record->pid;
    note->tid = record->tid;
    note->parent = record->parent_pid;
}

static void note_name(const struct name_record *record, struct note *note)
{
    note->kind = NOTE_BECOMES;
    note->pid = record->pid;
    note->tid = record->tid;
    memcpy(note->name, record->name, sizeof note->name - 1);
}

static void note_map(struct rings *rings, const struct map_record *record, struct note *note)
{
    size_t before = offsetof(struct map_record, path), after = sizeof(struct identity);
    size_t room = record->head.size > before + after ? record->head.size - before - after : 0;
    size_t bytes = room < sizeof rings->path ? room : sizeof rings->path - 1;
    memcpy(rings->path, record->path, bytes);
    rings->path[bytes] = 0;
    note->kind = NOTE_MAPS;
    note->argument[0] = record->address;
    note->argument[1] = record->bytes;
    note->number = (int64_t)record->offset;
    note->path = rings->path;
}

static bool is_known(struct rings *rings, const union record *record, struct note *note)
{
    unsigned misc = record->head.misc;
    switch (record->head.type) {
    case PERF_RECORD_SAMPLE:
        return note_sample(rings, record, note);
    case PERF_RECORD_SWITCH:
        note->kind = !(misc & PERF_RECORD_MISC_SWITCH_OUT) ? NOTE_IN : misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? NOTE_TAKEN : NOTE_OUT;
        return true;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        note_task(&record->task, note);
        return true;
    case PERF_RECORD_COMM:
        note_name(&record->name, note);
        return misc & PERF_RECORD_MISC_COMM_EXEC;
    case PERF_RECORD_MMAP:
        note_map(rings, &record->map, note);
        return *note->path == '/';
    case PERF_RECORD_LOST:
        note->kind = NOTE_LOST;
        note->result = (int64_t)record->lost.lost;
        return true;
    default:
        return false;
    }
}

/* Who it is of stands in front in a sample, and else last, before the time. */
static struct identity identity_of(const union record *record)
{
    struct identity found = {0};
    size_t at = record->head.type == PERF_RECORD_SAMPLE ? sizeof record->head : record->head.size - sizeof found;
    if (record->head.size >= sizeof record->head + sizeof found && at + sizeof found <= sizeof *record)
        memcpy(&found, record->bytes + at, sizeof found);
    return found;
}

/* A ring that was full has been read: notes were lost behind it. */
static bool note_full(struct rings *rings, struct note *note)
{
    bool is_found = false;
    rings->some_were_full = false;
    for (unsigned processor = 0; processor < rings->processors; processor++) {
        struct kernel_ring *ring = &rings->ring[processor];
        if (!is_found && ring->was_full && ring->from == ring->end) {
            *note = (struct note){.kind = NOTE_LOST, .time_ns = ring->last_ns, .since_ns = ring->last_ns};
            ring->was_full = false;
            is_found = true;
        }
        rings->some_were_full |= ring->was_full;
    }
    return is_found;
}

bool rings_next(struct rings *rings, struct note *note)
{
    struct kernel_ring *ring;
    if (rings->some_were_full && note_full(rings, note))
        return true;
    while ((ring = first_of(rings))) {
        union record record;
        uint64_t time_ns = ring->next_ns, since_ns = ring->last_ns;
        ring->last_ns = time_ns;
        take_record(rings, ring, &record);
        struct identity of = identity_of(&record);
        *note = (struct note){.pid = of.pid, .tid = of.tid, .time_ns = time_ns, .since_ns = since_ns};
        if (is_known(rings, &record, note))
            return true;
    }
    return false;
}
