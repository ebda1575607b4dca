/* What is seldom: the beginning and end of a recording, of a thread, of a forked child; a full block; a new text.

   All of it runs with the interpreter's lock held, or in a process's last moments, or in a child that has one thread;
   the one exception is a thread's end, which only leaves a mark. */
#define _GNU_SOURCE
#include "recorder.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "file.h"
#include "intern.h"

enum { ARENA_BYTES = 64 * 1024 };

struct recorder recorder;
__thread struct thread *current_thread __attribute__((tls_model("initial-exec")));

/* In memory that a forked child finds zeroed. Numbers of processes tell nothing: in a namespace of its own a child may
   have its parent's. */
struct identity {
    uint32_t ours;    /* the process began a recording, or its subexperiment */
    uint32_t refused; /* its subexperiment could not be made */
};

static struct {
    struct identity *identity;
    pid_t process;
    char directory[PATH_BYTES], founder[PATH_BYTES], lineage[256], parent[256];
    char variable[PATH_BYTES + 320]; /* in the environment; changed in place, for a child may not allocate */
    enum clock_kind clock;
    int stopped; /* the error that ended the recording before the process */
    uint32_t fork_number; /* of the fork that is under way, where the parent knows of it */
    struct pool pool;
    struct series strings, sites, stacks, threads, overview;
    struct cache string_cache, stack_cache, statement_cache;
    struct thread *first_thread; /* those that record */
    struct thread *spare_thread; /* those that have ended and were cleared away */
    char *arena, *arena_end;
    char *log_head;
    size_t log_head_bytes;
    pthread_key_t key;
    bool once;
    struct reading begun;
} own;

/* Is this the process that the experiment is of, and no child of it? */
static bool is_ours(void)
{
    return own.identity && own.identity->ours;
}

/* --- own cost */

struct reading own_begin(struct thread *thread)
{
    return thread->own_depth++ ? (struct reading){0, 0} : clock_read(&thread->clock);
}

static void charge_own(struct thread *thread, uint64_t wall_ns, uint64_t cpu_ns)
{
    thread->record->fields.own_wall_ns += wall_ns;
    thread->record->fields.own_cpu_ns += cpu_ns < wall_ns ? cpu_ns : wall_ns;
}

void own_end(struct thread *thread, struct reading begin)
{
    if (--thread->own_depth)
        return;
    struct reading end = clock_read(&thread->clock);
    charge_own(thread, end.wall_ns - begin.wall_ns, end.cpu_ns - begin.cpu_ns);
}

/* --- overview */

static uint64_t timeval_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

static void sample_overview(enum overview_kind kind, int status)
{
    struct rusage usage;
    struct overview *sample = series_extend(&own.overview, sizeof *sample);
    if (!sample || getrusage(RUSAGE_SELF, &usage))
        return;
    *sample = (struct overview){
        .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
        .user_ns = timeval_ns(usage.ru_utime),
        .system_ns = timeval_ns(usage.ru_stime),
        .max_rss_bytes = (uint64_t)usage.ru_maxrss * 1024,
        .minor_faults = (uint64_t)usage.ru_minflt,
        .major_faults = (uint64_t)usage.ru_majflt,
        .in_blocks = (uint64_t)usage.ru_inblock,
        .out_blocks = (uint64_t)usage.ru_oublock,
        .voluntary_switches = (uint64_t)usage.ru_nvcsw,
        .involuntary_switches = (uint64_t)usage.ru_nivcsw,
        .kind = kind,
        .status = status,
    };
    __atomic_store_n(&sample->time_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
}

/* --- log.xml and map.xml */

static const char log_end[] = "</experiment>\n", map_end[] = "</map>\n";

static int log_event(const char *kind, const char *attribute, const char *value)
{
    char text[512];
    int bytes = snprintf(text, sizeof text, "  <event kind=\"%s\" time_ns=\"%llu\" %s=\"%s\"/>\n%s", kind,
                         (unsigned long long)clock_ns(CLOCK_MONOTONIC), attribute, value, log_end);
    return xml_append(own.directory, "log.xml", log_end, text, (size_t)bytes);
}

/* Nothing more is recorded, the program goes on; what it calls from now on is counted as dropped. */
static void stop_recording(int error)
{
    if (own.stopped)
        return;
    own.stopped = error ? error : ENOSPC;
    sample_overview(OVERVIEW_STOPPED, own.stopped);
    log_event("stopped", "why", strerrordesc_np(own.stopped));
}

static int write_log(void)
{
    char process[1024];
    uint64_t since_ns = clock_ns(CLOCK_MONOTONIC) - own.begun.wall_ns;
    uint64_t time_ns = clock_ns(CLOCK_REALTIME) - since_ns;
    int bytes = snprintf(process, sizeof process,
                         "  <process pid=\"%d\" ppid=\"%d\" start_ns=\"%llu\" time_ns=\"%llu\" parent=\"%s\" "
                         "lineage=\"%s\"/>\n%s",
                         (int)own.process, (int)getppid(), (unsigned long long)own.begun.wall_ns,
                         (unsigned long long)time_ns, own.parent, own.lineage, log_end);
    const struct iovec pieces[] = {{own.log_head, own.log_head_bytes}, {process, (size_t)bytes}};
    return file_write(own.directory, "log.xml", pieces, 2);
}

static int write_map(void)
{
    char empty[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<map>\n</map>\n";
    const struct iovec piece = {empty, sizeof empty - 1};
    return file_write(own.directory, "map.xml", &piece, 1);
}

int recorder_describe(const char *head, size_t bytes)
{
    free(own.log_head);
    own.log_head = malloc(bytes);
    if (!own.log_head)
        return ENOMEM;
    memcpy(own.log_head, head, bytes);
    own.log_head_bytes = bytes;
    int failed = write_log();
    return failed ? failed : write_map();
}

int recorder_map(const char *text, size_t bytes)
{
    return xml_append(own.directory, "map.xml", map_end, text, bytes);
}

/* --- numbers */

static uint64_t key_of(uint64_t hash)
{
    return hash ? hash : 1;
}

static uint32_t string_add(const char *text, size_t bytes)
{
    size_t kept = bytes > STRING_BYTES ? STRING_BYTES : bytes;
    char *record = series_extend(&own.strings, sizeof(uint32_t) + (kept + 3) / 4 * 4);
    if (!record)
        return 0;
    memcpy(record + sizeof(uint32_t), text, kept);
    if (kept < bytes)
        memcpy(record + sizeof(uint32_t) + kept - 3, "...", 3);
    __atomic_store_n((uint32_t *)(void *)record, (uint32_t)kept, __ATOMIC_RELEASE);
    return own.strings.next - 1;
}

static uint32_t counted(uint32_t number, int error)
{
    if (!number)
        stop_recording(error);
    return number;
}

uint32_t string_intern(const char *text, size_t bytes)
{
    if (bytes == 0 || own.stopped)
        return 0;
    uint64_t key = key_of(hash_bytes(text, bytes));
    uint32_t number = cache_find(&own.string_cache, key);
    if (!number) {
        number = counted(string_add(text, bytes), errno);
        cache_keep(&own.string_cache, key, number);
    }
    return number;
}

uint32_t site_add(const struct site *site)
{
    if (own.stopped)
        return 0;
    struct site *record = series_extend(&own.sites, sizeof *record);
    if (!record)
        return counted(0, errno);
    memcpy((char *)record + sizeof record->file, (const char *)site + sizeof record->file,
           sizeof *record - sizeof record->file);
    __atomic_store_n(&record->file, site->file, __ATOMIC_RELEASE);
    return own.sites.next - 1;
}

static uint32_t stack_add(uint32_t site, uint32_t outer, uint32_t cut)
{
    struct stack *record = series_extend(&own.stacks, sizeof *record);
    if (!record)
        return 0;
    record->outer = outer;
    record->cut = cut;
    __atomic_store_n(&record->site, site, __ATOMIC_RELEASE);
    return own.stacks.next - 1;
}

uint32_t stack_intern(uint32_t site, uint32_t outer, uint32_t cut)
{
    if (site == 0 || own.stopped)
        return 0;
    uint64_t key = key_of(hash_mix(hash_mix(cut + 1, site), outer));
    uint32_t number = cache_find(&own.stack_cache, key);
    if (!number) {
        number = counted(stack_add(site, outer, cut), errno);
        cache_keep(&own.stack_cache, key, number);
    }
    return number;
}

uint32_t statement_find(uint64_t key)
{
    return cache_find(&own.statement_cache, key_of(key));
}

uint32_t statement_intern(uint64_t key, const char *text, size_t bytes)
{
    uint32_t number = string_intern(text, bytes);
    cache_keep(&own.statement_cache, key_of(key), number);
    return number;
}

/* --- threads */

/* Memory that a forked child finds zeroed. */
static void *arena_take(size_t bytes)
{
    bytes = (bytes + 63) / 64 * 64;
    if (own.arena_end - own.arena < (ptrdiff_t)bytes) {
        void *memory = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || madvise(memory, ARENA_BYTES, MADV_WIPEONFORK))
            return NULL;
        own.arena = memory;
        own.arena_end = own.arena + ARENA_BYTES;
    }
    void *taken = own.arena;
    own.arena += bytes;
    return taken;
}

static struct thread *take_thread(void)
{
    struct thread *thread = own.spare_thread;
    if (!thread)
        return arena_take(sizeof *thread);
    own.spare_thread = thread->next;
    memset(thread, 0, sizeof *thread);
    return thread;
}

/* Clear away the threads that have ended: their blocks go to those that come. */
static void collect_ended(void)
{
    for (struct thread **place = &own.first_thread; *place;) {
        struct thread *thread = *place;
        if (!__atomic_load_n(&thread->ended, __ATOMIC_ACQUIRE)) {
            place = &thread->next;
            continue;
        }
        *place = thread->next;
        if (thread->block)
            pool_leave(&own.pool, thread->block);
        thread->next = own.spare_thread;
        own.spare_thread = thread;
    }
}

static void note_clock(struct thread *thread, struct reading now)
{
    struct thread_fields *fields = &thread->record->fields;
    fields->end_cpu_ns = now.cpu_ns;
    fields->seen_ns = now.wall_ns;
    fields->syncs = thread->clock.syncs;
    fields->behind_ns = thread->clock.behind_ns;
    fields->clock = thread->clock.kind;
}

static void end_thread(struct thread *thread)
{
    struct reading now = clock_read(&thread->clock);
    note_clock(thread, now);
    thread->record->fields.end_ns = now.wall_ns;
}

/* Called as the thread ends, without the interpreter's lock. */
static void thread_exit(void *data)
{
    struct thread *thread = data;
    current_thread = NULL;
    if (thread->recording)
        end_thread(thread);
    clock_end(&thread->clock);
    __atomic_store_n(&thread->ended, 1, __ATOMIC_RELEASE);
}

static bool begin_thread(struct thread *thread)
{
    struct thread_record *record = series_extend(&own.threads, THREAD_BYTES);
    if (!record)
        return false;
    thread->block = NULL;
    thread->calls = 0;
    thread->own_depth = 0;
    thread->record = record;
    thread->number = own.threads.next - 1;
    clock_begin(&thread->clock, own.clock);
    struct reading now = clock_read(&thread->clock);
    record->fields.start_cpu_ns = now.cpu_ns;
    record->fields.ident = (uint64_t)pthread_self();
    record->fields.tid = (uint32_t)syscall(SYS_gettid);
    record->fields.main = record->fields.tid == (uint32_t)own.process;
    note_clock(thread, now);
    __atomic_store_n(&record->fields.start_ns, now.wall_ns, __ATOMIC_RELEASE);
    thread->next = own.first_thread;
    own.first_thread = thread;
    thread->recording = 1;
    return true;
}

/* A thread that an earlier recording left, or that a fork wiped, begins anew in its own place. */
static struct thread *enter(void)
{
    struct thread *thread = own.stopped ? NULL : current_thread ? current_thread : take_thread();
    if (!thread)
        return NULL;
    current_thread = thread;
    pthread_setspecific(own.key, thread);
    if (begin_thread(thread))
        return thread;
    stop_recording(errno);
    return NULL;
}

void recorder_lose(void)
{
    if (is_ours())
        own.threads.head->lost++;
}

static bool begin_child(void);

struct thread *thread_enter(void)
{
    int saved = errno;
    struct thread *thread = NULL;
    if (is_ours() || begin_child())
        thread = current_thread && current_thread->recording ? current_thread : enter();
    errno = saved;
    return thread;
}

struct thread_mark thread_mark(const struct thread *thread)
{
    const struct thread_fields *fields = &thread->record->fields;
    uint32_t used = thread->block ? thread->block->head.used : 0;
    return (struct thread_mark){fields->made, fields->recorded, fields->dropped, thread->calls, used};
}

void thread_rewind(struct thread *thread, struct thread_mark mark)
{
    struct thread_fields *fields = &thread->record->fields;
    struct block *block = thread->block;
    fields->made = mark.made;
    fields->recorded = mark.recorded;
    fields->dropped = mark.dropped;
    thread->calls = mark.calls;
    if (!block || block->head.used < mark.used)
        return;
    memset(block->events + mark.used, 0, (block->head.used - mark.used) * sizeof *block->events);
    block->head.used = mark.used;
    block->head.first_ns = UINT64_MAX;
}

/* --- blocks */

static int make_room(struct thread *thread)
{
    if (!thread->block) {
        collect_ended();
        thread->block = pool_take(&own.pool, thread->number);
        if (!thread->block)
            return errno;
    }
    /* A thread may have left its block at the very moment when it was full. */
    bool full = thread->block->head.used >= BLOCK_EVENTS;
    return full ? pool_drain(&own.pool, thread->block, thread->record->fields.dropped) : 0;
}

struct event *event_room(struct thread *thread)
{
    if (own.stopped)
        return NULL;
    int saved = errno;
    struct reading begin = own_begin(thread);
    int failed = make_room(thread);
    if (failed)
        stop_recording(failed);
    note_clock(thread, clock_read(&thread->clock));
    own_end(thread, begin);
    errno = saved;
    return failed ? NULL : &thread->block->events[thread->block->head.used];
}

/* --- the recording */

static int create_files(const uint32_t first[DATA_TYPES])
{
    struct series *const series[DATA_TYPES] = {
        [DATA_STRINGS] = &own.strings, [DATA_SITES] = &own.sites,       [DATA_STACKS] = &own.stacks,
        [DATA_THREADS] = &own.threads, [DATA_OVERVIEW] = &own.overview,
    };
    int failed = pool_create(&own.pool, own.directory);
    for (int type = 0; type < DATA_TYPES && !failed; type++)
        if (series[type])
            failed = series_create(series[type], own.directory, &data_types[type], first[type]);
    own.threads.keep_windows = true;
    return failed;
}

/* What a child needs to find its place; in the environment of this process's children, not in the program's mapping. */
static void write_variable(void)
{
    snprintf(own.variable, sizeof own.variable, "INTERPOSE_LINEAGE=%d %s %s", (int)own.process, own.founder,
             own.lineage);
}

static void program_exits(int status, void *nothing)
{
    (void)nothing;
    recorder_end(status & 0xff);
}

static int prepare_once(void)
{
    if (own.once)
        return 0;
    own.identity = arena_take(sizeof *own.identity);
    if (!own.identity)
        return ENOMEM;
    int failed = pthread_key_create(&own.key, thread_exit);
    own.once = !failed;
    if (!failed)
        on_exit(program_exits, NULL);
    return failed;
}

static int prepare_caches(void)
{
    int failed = cache_begin(&own.string_cache);
    failed = failed ? failed : cache_begin(&own.stack_cache);
    return failed ? failed : cache_begin(&own.statement_cache);
}

static void take_settings(const struct recorder_settings *settings)
{
    snprintf(own.directory, sizeof own.directory, "%s", settings->directory);
    snprintf(own.founder, sizeof own.founder, "%s", settings->founder);
    snprintf(own.lineage, sizeof own.lineage, "%s", settings->lineage);
    own.parent[0] = 0;
    own.clock = settings->clock;
    own.stopped = 0;
    own.process = getpid();
    own.begun = (struct reading){settings->begun_wall_ns, settings->begun_cpu_ns};
    recorder.stack_kept = settings->stack_kept;
    recorder.stack_above_ns = settings->stack_above_ns;
}

/* The time from `begun` to here was recording's own: it is in the thread's time, and charged. */
static bool begin_main_thread(void)
{
    struct thread *thread = enter();
    if (!thread)
        return false;
    struct thread_fields *fields = &thread->record->fields;
    charge_own(thread, fields->start_ns - own.begun.wall_ns, fields->start_cpu_ns - own.begun.cpu_ns);
    fields->start_ns = own.begun.wall_ns;
    fields->start_cpu_ns = own.begun.cpu_ns;
    return true;
}

static int begin_files(const uint32_t first[DATA_TYPES])
{
    int failed = create_files(first);
    if (failed)
        return failed;
    sample_overview(OVERVIEW_BEGIN, 0);
    own.first_thread = NULL;
    return begin_main_thread() ? 0 : errno ? errno : ENOMEM;
}

int recorder_begin(const struct recorder_settings *settings)
{
    static const uint32_t first[DATA_TYPES] = {1, 1, 1, 1, 1, 1};
    if (recorder.on)
        return EALREADY;
    if (getauxval(AT_SECURE))
        return EPERM;
    take_settings(settings);
    int failed = prepare_once();
    failed = failed ? failed : prepare_caches();
    failed = failed ? failed : begin_files(first);
    if (failed)
        return failed;
    own.identity->ours = 1;
    write_variable();
    putenv(own.variable);
    recorder.serial++;
    recorder.on = 1;
    return 0;
}

void recorder_end(int status)
{
    if (!recorder.on || !is_ours())
        return;
    int saved = errno;
    recorder.on = 0;
    for (struct thread *thread = own.first_thread; thread; thread = thread->next)
        thread->recording = 0;
    if (current_thread && current_thread->record)
        end_thread(current_thread);
    if (status >= 0) {
        char shown[16];
        snprintf(shown, sizeof shown, "%d", status);
        sample_overview(OVERVIEW_END, status);
        log_event("exit", "status", shown);
    } else {
        log_event("stopped", "why", "as asked");
        unsetenv("INTERPOSE_LINEAGE");
    }
    errno = saved;
}

/* --- forked children */

static uint32_t count_fork(void)
{
    return __atomic_add_fetch(&own.threads.head->forks, 1, __ATOMIC_RELAXED);
}

void recorder_forks(void)
{
    if (recorder.on && is_ours())
        own.fork_number = count_fork();
}

void recorder_has_forked(void)
{
    own.fork_number = 0;
}

static bool name_child(void)
{
    unsigned fork = own.fork_number ? own.fork_number : count_fork();
    own.fork_number = 0;
    memcpy(own.parent, own.lineage, sizeof own.parent);
    int named = snprintf(own.lineage, sizeof own.lineage, "%s_f%u", own.parent, fork);
    int placed = snprintf(own.directory, sizeof own.directory, "%s/%s.er", own.founder, own.lineage);
    return named < (int)sizeof own.lineage && placed < (int)sizeof own.directory;
}

static void give_up_child(struct file_head *parents)
{
    own.identity->refused = 1;
    recorder.on = 0;
    if (current_thread)
        current_thread->recording = 0;
    __atomic_add_fetch(&parents->unrecorded, 1, __ATOMIC_RELAXED);
}

/* The child goes on counting where its parent was, so what its caches know stays true. */
static bool begin_child(void)
{
    if (!own.identity || own.identity->refused)
        return false;
    own.begun = (struct reading){clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_THREAD_CPUTIME_ID)};
    const uint32_t first[DATA_TYPES] = {1, own.strings.next, own.sites.next, own.stacks.next, 1, 1};
    struct file_head *parents = own.threads.head; /* stays mapped */
    own.process = getpid();
    own.stopped = 0;
    own.first_thread = own.spare_thread = NULL;
    bool made = name_child() && directory_create(own.directory) == 0;
    if (!made || begin_files(first) || write_log() || write_map()) {
        if (made)
            directory_discard(own.directory);
        give_up_child(parents);
        return false;
    }
    own.identity->ours = 1;
    write_variable();
    return true;
}

void recorder_forked(void)
{
    if (recorder.on && !is_ours())
        thread_enter();
}
