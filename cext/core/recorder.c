/* What is seldom: the beginning and end of a recording, of a thread, of a forked child; a full block; a new text.

   All of it runs with the interpreter's lock held, or in a process's last moments, or in a child that has one thread;
   the one exception is a thread's end, which only leaves a mark. */
#define _GNU_SOURCE
#include "core/recorder.h"

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

#include "core/detail_levels.h"
#include "core/transaction_sampling.h"
#include "core/dialogue.h"
#include "core/file.h"
#include "core/filter.h"
#include "core/follow.h"
#include "core/intern.h"
#include "core/monitor.h"
#include "core/redact.h"
#include "core/unmap.h"
#include "core/statement.h"
#include "core/child_variables.h"

/* Of short statements one in so many is timed, a prime lest it be always the same of a few that take turns. */
enum { LOOK_AFTER_COUNTED = 256 };
static const uint64_t GOVERN_EVERY_NS = 500000000, GOVERN_AGAIN_NS = 10000000;

enum { ARENA_BYTES = 64 * 1024, SAMPLED = 17, EVENT_BYTES = 1024 };

/* What the log says of the end takes less. */
enum { ENDING_BYTES = 4096, ENDING_TRIES = 10 };

/* A monitor that gave no sign for so long is none; and how long to wait for it before looking again. */
#define MONITOR_SILENT_NS 3000000000ull
#define FIRST_STEP_NS 1000000ull
#define LONGEST_STEP_NS 1000000000ull
/* So long one that lives and makes no room (its disk is full, say) is waited for, until it makes some. */
#define LONGEST_FRUITLESS_NS 10000000000ull

/* The longest text of code that lies in no file, all of them, and the list of what is mapped. */
enum { TEXT_BYTES = 256 * 1024, TEXTS_BYTES = 16 * 1024 * 1024, OBJECTS_BYTES = 4 * 1024 * 1024 };

static struct control no_control; /* where no recording is */
struct recorder recorder = {.control = &no_control};
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
    bool objects; /* what is mapped is noted */
    int stopped; /* the error that ended the recording before the process */
    struct pool pool;
    struct series strings, sites, stacks, threads, overview;
    struct cache string_cache, stack_cache, statement_cache;
    uint32_t wait_when_full, ring_blocks, begins_paused;
    uint64_t drained_bytes, fruitless_ns; /* as last looked at while waiting for room, and how long in vain since */
    uint64_t sample_every_ns, sample_ns; /* and when the next is due */
    uint64_t govern_ns; /* when the governor looks next */
    uint32_t counted;   /* calls not timed since it began, for it is to look even where nothing else is called */
    struct thread *first_thread; /* those that record */
    uint64_t ended_run_delay_ns;   /* of those that were cleared away */
    struct thread *spare_thread; /* those that have ended and were cleared away */
    char *arena, *arena_end;
    char *log_head;
    size_t log_head_bytes;
    pthread_key_t key;
    bool once;
    struct reading begun;
} own;

/* Of the fork that is under way, where the parent knows of it. The thread's own: while the program's handlers for forks
   run, others may fork. */
static __thread uint32_t fork_number __attribute__((tls_model("initial-exec")));
static __thread uint32_t fork_fate __attribute__((tls_model("initial-exec"))); /* what becomes of what it is in */

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

static void own_end_for(struct thread *thread, struct reading begin, uint64_t times)
{
    if (--thread->own_depth)
        return;
    struct reading end = clock_read(&thread->clock);
    charge_own(thread, times * (end.wall_ns - begin.wall_ns), times * (end.cpu_ns - begin.cpu_ns));
}

void own_end(struct thread *thread, struct reading begin)
{
    own_end_for(thread, begin, 1);
}

/* --- overview */

static uint64_t timeval_ns(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

/* The threads' own figures, for that of the process is its first thread's alone. */
static uint64_t run_delays_ns(void)
{
    uint64_t sum_ns = own.ended_run_delay_ns;
    for (const struct thread *thread = own.first_thread; thread; thread = thread->next)
        sum_ns += thread->record->fields.run_delay_ns;
    return sum_ns;
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
        .run_delay_ns = run_delays_ns(),
    };
    __atomic_store_n(&sample->time_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELEASE);
}

static uint64_t later(uint64_t now_ns, uint64_t by_ns)
{
    return by_ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + by_ns;
}

/* --- log.xml and map.xml */

static const char log_end[] = "</experiment>\n", map_end[] = "</map>\n";

/* `attributes` are as they stand in the element. */
static int log_event_of(const char *directory, const char *kind, const char *attributes)
{
    char text[EVENT_BYTES];
    int bytes = snprintf(text, sizeof text, "  <event kind=\"%s\" time_ns=\"%llu\" %s/>\n%s", kind,
                         (unsigned long long)clock_ns(CLOCK_MONOTONIC), attributes, log_end);
    return bytes < (int)sizeof text ? xml_append(directory, "log.xml", log_end, text, (size_t)bytes) : EMSGSIZE;
}

static int log_event(const char *kind, const char *attributes)
{
    return log_event_of(own.directory, kind, attributes);
}

/* How a process ended is worth a longer wait for whoever writes there at the moment. */
static void log_ending(const char *kind, const char *attributes)
{
    int failed = EWOULDBLOCK;
    for (unsigned tries = 0; failed == EWOULDBLOCK && tries < ENDING_TRIES; tries++)
        failed = log_event(kind, attributes);
}

static int log_stopped(const char *why)
{
    char attributes[256];
    snprintf(attributes, sizeof attributes, "why=\"%s\"", why);
    return log_event("stopped", attributes);
}

/* Nothing more is recorded, the program goes on; what it calls from now on is counted as dropped. */
static void stop_recording(int error)
{
    if (own.stopped)
        return;
    own.stopped = error ? error : ENOSPC;
    sample_overview(OVERVIEW_STOPPED, own.stopped);
    log_stopped(strerrordesc_np(own.stopped));
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
    return file_write(own.directory, "log.xml", pieces, 2, ENDING_BYTES);
}

static int write_map(void)
{
    char empty[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<map>\n</map>\n";
    const struct iovec piece = {empty, sizeof empty - 1};
    return file_write(own.directory, "map.xml", &piece, 1, 0);
}

const char *recorder_directory(void)
{
    return recorder.on && !own.stopped && is_ours() ? own.directory : NULL;
}

void recorder_say(const char *kind, const char *attributes)
{
    int saved = errno;
    if (recorder_directory())
        log_event(kind, attributes);
    errno = saved;
}

static bool is_set(const uint32_t *place)
{
    return __atomic_load_n(place, __ATOMIC_RELAXED) != 0;
}

/* The pauses are the whole experiment's, and told by its founder's log. What is noted is no longer than what is: a pause
   is noted after the last call that was recorded, and its end before the first. Page and log say the same, whoever says
   something else at the same moment. */
void recorder_turn(bool paused)
{
    int saved = errno;
    uint32_t *place = &recorder.control->paused;
    if (recorder_directory() && paused != is_set(place)) {
        int held = file_lock(own.founder, "threads");
        if (paused != is_set(place)) {
            if (paused)
                __atomic_store_n(place, 1, __ATOMIC_SEQ_CST);
            log_event_of(own.founder, paused ? "pause" : "resume", "");
            __atomic_store_n(place, paused, __ATOMIC_SEQ_CST);
        }
        file_unlock(held);
    }
    errno = saved;
}

static bool is_founder(void)
{
    return strcmp(own.directory, own.founder) == 0;
}

/* Not before all is calibrated, which calls shims. */
static void begin_paused(void)
{
    __atomic_store_n(&recorder.control->paused, 1, __ATOMIC_RELAXED);
    log_event("pause", "why=\"as asked\"");
}

/* As it may stand in XML; false for what would need more than that. */
static bool is_plain(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127 || strchr("<>&\"", *text))
            return false;
    return true;
}

void recorder_note_root(const char *path)
{
    char text[PATH_BYTES + 64];
    size_t left = strlen(path);
    char *redacted = redact(path, &left);
    int saved = errno, bytes = snprintf(text, sizeof text, "  <root path=\"%s\"/>\n%s", path, log_end);
    bool may_stand = !redacted && left;
    free(redacted);
    if (may_stand && bytes < (int)sizeof text && is_plain(path) && !own.stopped && is_ours())
        xml_append(own.directory, "log.xml", log_end, text, (size_t)bytes);
    errno = saved;
}

void recorder_note_text(uint32_t name, const char *text, size_t bytes)
{
    static const char nothing[3];
    uint32_t head[2] = {name, (uint32_t)bytes};
    const struct iovec pieces[] = {
        {head, sizeof head}, {(void *)(uintptr_t)text, bytes}, {(void *)(uintptr_t)nothing, -bytes & 3}};
    int saved = errno;
    size_t left = bytes;
    char *redacted = redact(text, &left);
    if (redacted || !left) /* it is the text of the program no more */
        name = 0;
    free(redacted);
    if (name && bytes <= TEXT_BYTES && !own.stopped && is_ours())
        file_add(own.directory, "dyntext", pieces, 3, TEXTS_BYTES);
    errno = saved;
}

static void note_objects(void)
{
    if (own.objects && !redact_is_on())
        file_copy(own.directory, "objects", "/proc/self/maps", OBJECTS_BYTES);
}

int recorder_describe(const char *head, size_t bytes)
{
    free(own.log_head);
    own.log_head = malloc(bytes);
    if (!own.log_head)
        return ENOMEM;
    memcpy(own.log_head, head, bytes);
    own.log_head_bytes = bytes;
    note_objects();
    int failed = write_log();
    failed = failed ? failed : write_map();
    if (!failed && own.begins_paused && is_founder())
        begin_paused();
    return failed;
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

static uint32_t string_keep(uint64_t key, const char *text, size_t bytes)
{
    size_t left = bytes;
    uint32_t number = filter_number_of(text, bytes);
    char *redacted = number ? NULL : redact(text, &left);
    if (!number && left)
        number = counted(string_add(redacted ? redacted : text, left), errno);
    free(redacted);
    cache_keep(&own.string_cache, key, number);
    return number;
}

uint32_t string_intern(const char *text, size_t bytes)
{
    if (bytes == 0 || own.stopped)
        return 0;
    uint64_t key = key_of(hash_bytes(text, bytes));
    uint32_t number = cache_find(&own.string_cache, key);
    return number ? number : string_keep(key, text, bytes);
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

/* A text never seen before takes longest, and is timed by itself. */
static uint32_t new_string(struct thread *thread, uint64_t key, const char *text, size_t bytes)
{
    struct reading begin = own_begin(thread);
    uint32_t number = string_keep(key, text, bytes);
    own_end(thread, begin);
    return number;
}

/* For how many statements this one is timed; 0: it is not. */
static uint32_t statement_weight(size_t bytes)
{
    static uint32_t count;
    if (bytes > STATEMENT_SHORT)
        return 1;
    return count++ % SAMPLED ? 0 : SAMPLED;
}

/* What is to be kept of it; gives its length. */
static size_t statement_kept(const char *sql, size_t bytes, char *text, size_t room, bool *literals)
{
    enum how_much how_much = arguments_kept(KIND_db);
    if (how_much == KEEP_whole) {
        size_t length = bytes < room ? bytes : room;
        memcpy(text, sql, length);
        *literals = true; /* it may be a text of one call */
        return length;
    }
    size_t length = statement_normalise(sql, bytes, text, room, literals), word = 0;
    while (word < length && ((text[word] | 0x20) >= 'a' && (text[word] | 0x20) <= 'z'))
        word++;
    return how_much == KEEP_nothing ? 0 : how_much == KEEP_shape ? word : length;
}

uint32_t statement_intern(uint64_t statement_key, const char *sql, size_t bytes, bool *literals)
{
    static char text[STRING_BYTES + 1]; /* under the interpreter's lock; one more byte tells that it was cut */
    struct thread *thread = current_thread;
    struct reading begin = {0, 0};
    uint32_t weight = statement_weight(bytes);
    if (weight)
        begin = own_begin(thread);
    size_t length = statement_kept(sql, bytes, text, sizeof text, literals);
    uint64_t key = key_of(hash_bytes(text, length));
    uint32_t number = cache_find(&own.string_cache, key);
    if (weight)
        own_end_for(thread, begin, weight);
    if (!number && length && !own.stopped)
        number = new_string(thread, key, text, length);
    if (statement_key)
        cache_keep(&own.statement_cache, statement_key, number);
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
        own.ended_run_delay_ns += thread->record->fields.run_delay_ns;
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

/* The calling thread's, from the kernel's own count: time on a processor, time waited for one, turns. */
static void note_run_delay(struct thread *thread)
{
    char text[96];
    unsigned long long delay_ns;
    if (file_read("/proc/thread-self/schedstat", text, sizeof text) && sscanf(text, "%*u %llu", &delay_ns) == 1)
        thread->record->fields.run_delay_ns = delay_ns;
}

/* When the thread is to look again. */
static uint64_t next_look_ns(uint64_t now_ns)
{
    uint64_t every_ns = recorder.governed && GOVERN_EVERY_NS < own.sample_every_ns ? GOVERN_EVERY_NS : own.sample_every_ns;
    return later(now_ns, every_ns);
}

static void tell_lowered(uint32_t number, enum level level, double share)
{
    static const char *const words[] = {LEVELS(WORD_OF_LEVEL)};
    char attributes[96];
    snprintf(attributes, sizeof attributes, "intrinsic=\"%u\" level=\"%s\" share=\"%.2f%%\"", number, words[level],
             share * 100);
    log_event("level", attributes);
}

static void govern(uint64_t now_ns)
{
    own.govern_ns = later(now_ns, GOVERN_EVERY_NS);
    governor_look(clock_ns(CLOCK_PROCESS_CPUTIME_ID), tell_lowered);
}

void recorder_govern(const struct governor_settings *settings)
{
    governor_begin(settings);
    recorder.governed = 1;
    if (current_thread)
        current_thread->look_ns = 0;
}

void recorder_count(struct thread *thread, uint32_t intrinsic)
{
    int failed = intrinsic < COUNTED_NUMBERS ? level_count(own.directory, intrinsic) : ERANGE;
    if (UNLIKELY(failed)) {
        thread->record->fields.made++;
        thread->record->fields.dropped++;
    }
    if (recorder.governed && ++own.counted % LOOK_AFTER_COUNTED == 0 && clock_ns(CLOCK_MONOTONIC) >= thread->look_ns)
        thread_look(thread);
}

static bool is_within_transaction(const struct thread *thread)
{
    const struct thread_record *record = thread->record;
    for (uint32_t index = 0; index < record->fields.depth && index < OPEN_CALLS; index++)
        if (record->open[index].call && is_transaction(record->open[index].intrinsic))
            return true;
    return false;
}

void thread_look(struct thread *thread)
{
    int saved = errno;
    struct reading begin = own_begin(thread), now = clock_read(&thread->clock);
    thread->look_ns = next_look_ns(now.wall_ns);
    note_clock(thread, now);
    note_run_delay(thread);
    if (now.wall_ns >= own.sample_ns && !own.stopped) {
        own.sample_ns = later(now.wall_ns, own.sample_every_ns);
        sample_overview(OVERVIEW_SAMPLE, 0);
    }
    bool governs = recorder.governed && now.wall_ns >= own.govern_ns && !own.stopped;
    if (governs && is_within_transaction(thread))
        thread->look_ns = later(now.wall_ns, GOVERN_AGAIN_NS);
    else if (governs)
        govern(now.wall_ns);
    own_end(thread, begin);
    errno = saved;
}

void recorder_sample(const char *attributes)
{
    int saved = errno;
    struct thread *thread = recorder_directory() ? recording() : NULL;
    if (thread) {
        own.sample_ns = 0;
        thread_look(thread);
        log_event("sample", attributes);
    }
    errno = saved;
}

static uint32_t filter_changes(void)
{
    return __atomic_load_n(&recorder.control->filter_changes, __ATOMIC_ACQUIRE);
}

static void take_filter(void)
{
    filter_read(own.founder, own.lineage, filter_changes());
    if (recorder.filter_changed)
        recorder.filter_changed();
}

/* Another filter is to hold. */
static void heed_filter(void)
{
    struct thread *thread = current_thread;
    bool charged = thread && thread->recording;
    if (filter.changes == filter_changes() || own.stopped || !is_ours())
        return;
    struct reading begin = charged ? own_begin(thread) : (struct reading){0, 0};
    take_filter();
    if (charged)
        own_end(thread, begin);
}

int recorder_filter(const char *text, size_t bytes)
{
    const struct iovec piece = {(void *)(uintptr_t)text, bytes};
    int failed = bytes && is_founder() ? file_write(own.directory, "filter", &piece, 1, 0) : 0;
    if (bytes && is_founder() && !failed)
        __atomic_store_n(&recorder.control->filter_changes, 1, __ATOMIC_RELEASE);
    take_filter();
    return failed;
}

bool recorder_heed(void)
{
    uint64_t said = said_from_outside();
    struct thread *thread = current_thread;
    if ((uint32_t)said) {
        recorder.heeded = LOOKED_AWAY;
        return true;
    }
    if (recorder.heeded == LOOKED_AWAY && recorder.pause_ended)
        recorder.pause_ended();
    heed_filter();
    if (thread && thread->recording) {
        recorder.heeded = said;
        own.sample_ns = thread->look_ns = 0; /* with the call that begins now */
    }
    return false;
}

static void end_thread(struct thread *thread)
{
    struct reading now = clock_read(&thread->clock);
    note_run_delay(thread);
    note_clock(thread, now);
    thread->record->fields.end_ns = now.wall_ns;
}

/* Of a thread that goes on, though the recording does not; by the one that ends that. */
static void end_other_thread(struct thread *thread)
{
    struct thread_fields *fields = &thread->record->fields;
    clockid_t clock = (clockid_t)(~fields->tid << 3 | 6); /* as the kernel names the CPU clock of a thread */
    struct timespec now;
    if (clock_gettime(clock, &now))
        return;
    uint64_t cpu_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    fields->end_cpu_ns = cpu_ns > fields->end_cpu_ns ? cpu_ns : fields->end_cpu_ns;
    fields->end_ns = fields->seen_ns = clock_ns(CLOCK_MONOTONIC);
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
    thread->quiet = 0;
    thread->gatherings = 0;
    memset(thread->named, 0, sizeof thread->named);
    thread->lines = NULL;
    thread->name[0] = 0;
    thread->name_tries = 0;
    thread->record = record;
    thread->number = own.threads.next - 1;
    clock_begin(&thread->clock, own.clock);
    struct reading now = clock_read(&thread->clock);
    thread->look_ns = next_look_ns(now.wall_ns);
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
    if (begin_thread(thread)) {
        if (recorder.thread_begins)
            recorder.thread_begins();
        if (recorder.on && recorder.thread_named)
            recorder.thread_named();
        return thread;
    }
    stop_recording(errno);
    return NULL;
}

void recorder_trigger(void)
{
    struct control *control = recorder.control;
    __atomic_store_n(&control->trigger_ns, clock_ns(CLOCK_MONOTONIC), __ATOMIC_RELAXED);
    __atomic_store_n(&control->trigger_process, (uint32_t)own.process, __ATOMIC_RELAXED);
    __atomic_add_fetch(&control->triggers, 1, __ATOMIC_RELEASE);
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

static bool pool_is_full(const struct control *control)
{
    uint64_t taken = __atomic_load_n(&control->taken_bytes, __ATOMIC_RELAXED);
    uint64_t drained = __atomic_load_n(&control->drained_bytes, __ATOMIC_RELAXED);
    return control->pool_bytes && taken - drained + BLOCK_BYTES > control->pool_bytes;
}

static bool limit_is_reached(const struct control *control)
{
    return control->limit_bytes &&
           __atomic_load_n(&control->taken_bytes, __ATOMIC_RELAXED) + BLOCK_BYTES > control->limit_bytes;
}

static bool monitor_lives(const struct control *control)
{
    uint64_t sign_ns = __atomic_load_n(&control->monitor_ns, __ATOMIC_RELAXED);
    return sign_ns && sign_ns + MONITOR_SILENT_NS > clock_ns(CLOCK_MONOTONIC);
}

/* Is it worth waiting: has room been made in the time that this process waited last? */
static bool hopes_for_room(const struct control *control)
{
    uint64_t drained = __atomic_load_n(&control->drained_bytes, __ATOMIC_RELAXED);
    if (drained != own.drained_bytes) {
        own.drained_bytes = drained;
        own.fruitless_ns = 0;
    }
    return own.fruitless_ns < LONGEST_FRUITLESS_NS;
}

/* The interpreter's lock stays held: who chose to wait lets the whole program wait. */
static void wait_for_monitor(struct control *control)
{
    uint64_t step_ns = FIRST_STEP_NS;
    while (pool_is_full(control) && monitor_lives(control) && hopes_for_room(control)) {
        uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
        struct timespec step = {(time_t)(step_ns / 1000000000u), (long)(step_ns % 1000000000u)};
        nanosleep(&step, NULL);
        uint64_t waited_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
        own.fruitless_ns += waited_ns;
        __atomic_add_fetch(&control->full_waits, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&control->full_wait_ns, waited_ns, __ATOMIC_RELAXED);
        step_ns = step_ns * 2 > LONGEST_STEP_NS ? LONGEST_STEP_NS : step_ns * 2;
    }
}

/* A pool smaller than what a monitor is started for has none yet. One that was just started has its time to come, and so
   has `interpose run`, which has not seen yet that its program records: no sign was given ever. */
static void call_monitor(struct control *control)
{
    static uint64_t called_ns;
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (monitor_lives(control) || now_ns < called_ns + MONITOR_SILENT_NS)
        return;
    called_ns = now_ns;
    int failed = monitor_start(own.founder);
    if (failed == 0 || (failed == EBUSY && control->monitor_ns == 0))
        __atomic_store_n(&control->monitor_ns, now_ns, __ATOMIC_RELAXED);
}

/* Is there room in the pool for a block more? The recording goes on if not: there may be again. */
static bool pool_has_room(struct control *control)
{
    if (own.wait_when_full && pool_is_full(control) && !limit_is_reached(control) && hopes_for_room(control)) {
        call_monitor(control);
        wait_for_monitor(control);
    }
    return !pool_is_full(control) && !limit_is_reached(control);
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

/* What the calls in progress, of which the innermost is just being recorded, have taken for themselves so far. That one
   is already counted as made inside the one around it. */
static struct reading taken_by_open_calls(const struct thread_record *record, struct reading now)
{
    const struct open_call *outermost = NULL, *innermost = NULL;
    struct reading inner = {0, 0}, last = {0, 0};
    for (uint32_t index = 0; index < record->fields.depth && index < OPEN_CALLS; index++) {
        if (!record->open[index].call)
            continue;
        innermost = &record->open[index];
        outermost = outermost ? outermost : innermost;
        inner.wall_ns += innermost->inner_wall_ns;
        inner.cpu_ns += innermost->inner_cpu_ns;
    }
    if (!outermost)
        return inner;
    if (innermost != outermost)
        last = (struct reading){now.wall_ns - innermost->start_ns, now.cpu_ns - innermost->start_cpu_ns};
    return (struct reading){
        .wall_ns = less(now.wall_ns - outermost->start_ns + last.wall_ns, inner.wall_ns),
        .cpu_ns = less(now.cpu_ns - outermost->start_cpu_ns + last.cpu_ns, inner.cpu_ns),
    };
}

static struct block_begun begun_now(struct thread *thread)
{
    const struct thread_fields *fields = &thread->record->fields;
    struct reading now = clock_read(&thread->clock), open = taken_by_open_calls(thread->record, now);
    return (struct block_begun){
        .dropped = fields->dropped,
        .recorded = fields->recorded,
        .before_wall_ns = less(now.wall_ns - fields->start_ns, open.wall_ns),
        .before_cpu_ns = less(now.cpu_ns - fields->start_cpu_ns, open.cpu_ns),
        .own_wall_ns = fields->own_wall_ns,
        .own_cpu_ns = fields->own_cpu_ns,
    };
}

static void count_taken(struct control *control)
{
    uint64_t taken = __atomic_add_fetch(&control->taken_bytes, BLOCK_BYTES, __ATOMIC_RELAXED);
    uint64_t in_use = taken - __atomic_load_n(&control->drained_bytes, __ATOMIC_RELAXED);
    uint64_t most = __atomic_load_n(&control->most_bytes, __ATOMIC_RELAXED);
    while (in_use > most && in_use <= taken &&
           !__atomic_compare_exchange_n(&control->most_bytes, &most, in_use, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static int drain(struct thread *thread)
{
    const struct control *control = recorder.control;
    bool grows = pool_grows(&own.pool);
    if (grows && own.ring_blocks && (pool_is_full(control) || limit_is_reached(control)))
        grows = !pool_settle(&own.pool);
    if (grows && !pool_has_room(recorder.control))
        return EDQUOT;
    struct block_begun begun = begun_now(thread);
    int failed = pool_drain(&own.pool, thread->block, &begun);
    if (failed || !grows)
        return failed;
    count_taken(recorder.control);
    if (!own.ring_blocks)
        monitor_grown(BLOCK_BYTES, own.founder);
    return 0;
}

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
    return full ? drain(thread) : 0;
}

struct event *event_room(struct thread *thread)
{
    if (own.stopped)
        return NULL;
    int saved = errno;
    struct reading begin = own_begin(thread);
    int failed = make_room(thread);
    if (failed == EDQUOT)
        __atomic_add_fetch(&recorder.control->full_drops, 1, __ATOMIC_RELAXED);
    else if (failed)
        stop_recording(failed);
    note_clock(thread, clock_read(&thread->clock));
    own_end(thread, begin);
    errno = saved;
    return failed ? NULL : &thread->block->events[thread->block->head.used];
}

void span_drop(const struct span *span)
{
    struct thread *thread = span->thread;
    thread->record->fields.dropped++;
    close_call(thread->record, span->index);
    if (span->begin.wall_ns + span->wall_ns >= thread->look_ns)
        thread_look(thread);
}

/* The last event of an interval stands for it, its CPU time being that until the next tick; a call in which no interval
   ends is none. Wall times are made as long, or calls would overlap that did not. What the program says is kept. */
void span_record_sampled(const struct span *span, uint64_t bytes, uint32_t error)
{
    struct thread *thread = span->thread;
    struct thread_record *record = thread->record;
    struct open_call *open = &record->open[span->index];
    struct span sampled = *span;
    sampled.wall_ns = sampled.cpu_ns = sampled_ns(thread, open->start_cpu_ns + span->cpu_ns, span->cpu_ns);
    open->inner_wall_ns = open->inner_cpu_ns;
    if (sampled.cpu_ns || is_told_by_program(span->intrinsic)) {
        span_append(&sampled, bytes, error);
        return;
    }
    record->fields.made--;
    record->fields.gathered++;
    close_call(record, span->index);
    if (span->begin.wall_ns + span->wall_ns >= thread->look_ns)
        thread_look(thread);
}

/* --- the recording */

/* The founder's page is for the whole experiment. A forked child has it mapped; where it cannot be had, a process has
   its own for itself. */
static struct control *find_control(void)
{
    struct control *ours = (struct control *)(own.threads.head + 1);
    if (is_founder())
        return ours;
    if (recorder.control != &no_control)
        return recorder.control;
    struct file_head *founders = file_map_head(own.founder, data_types[DATA_THREADS].name, THREAD_BYTES);
    return founders ? (struct control *)(founders + 1) : ours;
}

static int create_files(const uint32_t first[DATA_TYPES])
{
    struct series *const series[DATA_TYPES] = {
        [DATA_STRINGS] = &own.strings, [DATA_SITES] = &own.sites,       [DATA_STACKS] = &own.stacks,
        [DATA_THREADS] = &own.threads, [DATA_OVERVIEW] = &own.overview,
    };
    int failed = pool_create(&own.pool, own.directory, own.ring_blocks);
    for (int type = 0; type < DATA_TYPES && !failed; type++)
        if (series[type])
            failed = series_create(series[type], own.directory, &data_types[type], first[type]);
    own.threads.keep_windows = true;
    children_forget();
    levels_begin();
    dialogue_begin();
    if (failed)
        return failed;
    own.pool.ring.overwritten = &own.threads.head->overwritten;
    recorder.control = find_control();
    recorder.heeded = (uint32_t)said_from_outside() ? LOOKED_AWAY : said_from_outside();
    filter_forget(); /* while all is calibrated */
    filter.changes = filter_changes();
    return failed;
}

/* What a child needs to find its place; in the environment of this process's children, not in the program's mapping. */
static void write_variable(void)
{
    snprintf(own.variable, sizeof own.variable, VARIABLE_LINEAGE "=%d %s %s", (int)own.process, own.founder,
             own.lineage);
    variables_name(own.variable);
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
    recorder.control = &no_control;
    recorder.heeded = 0;
    own.clock = settings->clock;
    own.objects = settings->objects;
    files_begin(settings->group_reads);
    own.stopped = 0;
    own.process = getpid();
    own.begun = (struct reading){settings->begun_wall_ns, settings->begun_cpu_ns};
    own.wait_when_full = settings->wait_when_full;
    own.ring_blocks = (uint32_t)(settings->ring_bytes / BLOCK_BYTES);
    own.begins_paused = settings->paused;
    own.fruitless_ns = 0;
    own.sample_every_ns = settings->sample_every_ns;
    recorder.stack_kept = settings->stack_kept;
    recorder.stack_above_ns = settings->stack_kept ? settings->stack_above_ns : UINT64_MAX;
    recorder.trigger_above_ns = settings->trigger_above_ns;
    recorder.long_ns = recorder.stack_above_ns < recorder.trigger_above_ns ? recorder.stack_above_ns
                                                                           : recorder.trigger_above_ns;
    recorder.trigger_exit = settings->trigger_exit;
    snprintf(recorder.trigger_errors, sizeof recorder.trigger_errors, "%s", settings->trigger_errors);
    recorder.wait_above_ns = settings->wait_above_ns;
    recorder.rows = settings->rows;
    recorder.all_waits = settings->wait_above_ns == 0;
    recorder.governed = 0;
    dialogue_choose(settings->dialogue_bytes);
    recorder.interval_ns = 0;
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

/* Those of an earlier recording: who lives begins anew in its own place. */
static void forget_threads(void)
{
    for (struct thread *thread = own.first_thread, *next; thread; thread = next) {
        next = thread->next;
        if (!__atomic_load_n(&thread->ended, __ATOMIC_ACQUIRE))
            continue;
        thread->next = own.spare_thread;
        own.spare_thread = thread;
    }
    own.first_thread = NULL;
}

static int begin_files(const uint32_t first[DATA_TYPES])
{
    int failed = create_files(first);
    if (failed)
        return failed;
    forget_threads();
    own.ended_run_delay_ns = 0;
    own.sample_ns = later(clock_ns(CLOCK_MONOTONIC), own.sample_every_ns);
    sample_overview(OVERVIEW_BEGIN, 0);
    return begin_main_thread() ? 0 : errno ? errno : ENOMEM;
}

int recorder_begin(const struct recorder_settings *settings)
{
    static const uint32_t first[DATA_TYPES] = {1, 1, 1, 1, 1, 1, 1};
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
    if (is_founder()) {
        recorder.control->pool_bytes = settings->pool_bytes;
        recorder.control->limit_bytes = settings->limit_bytes;
    }
    own.identity->ours = 1;
    write_variable();
    putenv(own.variable);
    recorder.serial++;
    recorder.on = 1;
    if (recorder.thread_named)
        recorder.thread_named();
    return 0;
}

/* Nobody records any longer. */
static void stop_threads(bool process_ends)
{
    if (recorder.before_end)
        recorder.before_end();
    recorder.on = 0;
    for (struct thread *thread = own.first_thread; thread; thread = thread->next) {
        thread->recording = 0;
        if (!process_ends && thread != current_thread && !__atomic_load_n(&thread->ended, __ATOMIC_ACQUIRE))
            end_other_thread(thread);
    }
    if (current_thread && current_thread->record)
        end_thread(current_thread);
    for (struct thread *thread = own.first_thread; thread && !process_ends; thread = thread->next)
        clock_release(&thread->clock);
}

void recorder_end(int status)
{
    if (!recorder.on || !is_ours())
        return;
    int saved = errno;
    stop_threads(status >= 0);
    if (status > 0 && recorder.trigger_exit)
        recorder_trigger();
    if (status >= 0) {
        char shown[32];
        snprintf(shown, sizeof shown, "status=\"%d\"", status);
        sample_overview(OVERVIEW_END, status);
        note_objects();
        log_ending("exit", shown);
    } else {
        log_stopped("as asked");
        variables_forget();
    }
    errno = saved;
}

void recorder_hush(void)
{
    if (current_thread)
        current_thread->quiet++;
}

void recorder_detach(void)
{
    if (!recorder.on || !is_ours())
        return;
    int saved = errno;
    stop_threads(false);
    log_ending("detached", "");
    variables_forget();
    recorder.control = &no_control;
    recorder.heeded = 0;
    children_forget();
    levels_begin();
    retire_files(own.threads.head);
    own.threads.head = NULL;
    errno = saved;
}

/* --- children: recorded by the shims of what starts and what waits, with the interpreter's lock held */

struct child *recorder_starts(const struct child *attempt)
{
    struct thread *thread = current_thread;
    if (own.stopped || !is_ours() || !thread || !thread->recording)
        return NULL;
    struct reading begin = own_begin(thread);
    struct child attempted = *attempt;
    attempted.thread = thread->number;
    if (attempted.how == CHILD_EXEC)
        attempted.pid = (uint32_t)own.process;
    struct child *child = children_add(own.directory, &attempted);
    if (!child)
        stop_recording(errno);
    own_end(thread, begin);
    return child;
}

/* --- forked children */

void recorder_tell_fate(void)
{
    if (chosen.outside != FATE_none)
        recorder_say("within", chosen.outside == FATE_kept ? "text=\"kept\"" : "text=\"passed over\"");
}

static uint32_t count_fork(void)
{
    return __atomic_add_fetch(&own.threads.head->forks, 1, __ATOMIC_RELAXED);
}

void recorder_forks(void)
{
    if (!recorder.on || !is_ours())
        return;
    fork_number = count_fork();
    fork_fate = chosen.outside;
    if (!current_thread)
        return;
    current_thread->fork = fork_number;
    if (chosen.one_in && current_thread->recording)
        fork_fate = chosen_fate(current_thread->record);
}

void recorder_has_forked(void)
{
    fork_number = 0;
}

static bool name_child(void)
{
    unsigned fork = fork_number ? fork_number : count_fork();
    fork_number = 0;
    memcpy(own.parent, own.lineage, sizeof own.parent);
    int named = snprintf(own.lineage, sizeof own.lineage, "%s_f%u", own.parent, fork);
    int placed = snprintf(own.directory, sizeof own.directory, "%s/%s.er", own.founder, own.lineage);
    return named < (int)sizeof own.lineage && placed < (int)sizeof own.directory;
}

static void refuse_child(void)
{
    own.identity->refused = 1;
    recorder.on = 0;
    if (current_thread)
        current_thread->recording = 0;
}

/* The child goes on counting where its parent was, so what its caches know stays true. */
static bool begin_child(void)
{
    if (!own.identity || own.identity->refused)
        return false;
    own.begun = (struct reading){clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_THREAD_CPUTIME_ID)};
    const uint32_t first[DATA_TYPES] = {1, own.strings.next, own.sites.next, own.stacks.next, 1, 1, 1};
    struct file_head *parents = own.threads.head; /* stays mapped */
    own.process = getpid();
    own.stopped = 0;
    own.first_thread = own.spare_thread = NULL;
    enum fate fate = fork_number ? fork_fate : chosen.outside;
    bool named = name_child();
    if (named && !follow_matches(own.lineage)) {
        refuse_child();
        return false;
    }
    bool made = named && directory_create(own.directory) == 0;
    if (!made || begin_files(first) || write_log() || write_map()) {
        if (made)
            directory_discard(own.directory);
        refuse_child();
        __atomic_add_fetch(&parents->unrecorded, 1, __ATOMIC_RELAXED);
        return false;
    }
    own.identity->ours = 1;
    chosen_forked(own.lineage, fate);
    take_filter();
    write_variable();
    recorder_tell_fate();
    return true;
}

void recorder_forked(void)
{
    if (recorder.on && !is_ours())
        thread_enter();
}
