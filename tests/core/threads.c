/* A program without Python that records: eight threads that call, each of which starts threads that end, while the main
   thread forks; then more threads in the children. It prints what it did, by which the experiment is judged.

   Usage: threads DIRECTORY HEAD [alone], where DIRECTORY exists and HEAD is the beginning of a log.xml; `alone`: children
   start no threads, for after a fork from among several the sanitizers may not (their own locks are held for ever). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/follow.h"
#include "core/recorder.h"
#include "core/trace_contexts.h"

enum { THREADS = 8, ROUNDS = 2000, SHORT_EVERY = 100, SHORT_CALLS = 5, FORKS = 12, CHILD_CALLS = 50, TEXTS = 97 };
enum { OUTER = 1, INNER = 2, COUNTED = 3 };

static const char map[] =
    "  <intrinsic number=\"1\" name=\"test.outer\" kind=\"file\"/>\n"
    "  <intrinsic number=\"2\" name=\"test.inner\" kind=\"net\"/>\n"
    "  <intrinsic number=\"3\" name=\"test.counted\" kind=\"sync\"/>\n</map>\n";

static bool alone;

/* Of all processes together. */
static struct made {
    uint64_t calls, counted, threads, children;
} *made;

static void add(uint64_t *count, uint64_t more)
{
    __atomic_add_fetch(count, more, __ATOMIC_RELAXED);
}

static uint32_t text_number(unsigned who, unsigned round)
{
    char text[64];
    int bytes = snprintf(text, sizeof text, "/thread %u/text %u", who, round % TEXTS);
    return string_intern(text, (size_t)bytes);
}

static uint32_t stack_number(uint32_t file, unsigned round)
{
    static uint32_t sites[2]; /* by whether the round is even */
    struct site site = {.file = file, .line = 10 + round % 2};
    uint32_t known = __atomic_load_n(&sites[round % 2], __ATOMIC_RELAXED);
    if (!known) {
        known = site_add(&site);
        __atomic_store_n(&sites[round % 2], known, __ATOMIC_RELAXED);
    }
    return stack_intern(known, 0, 0);
}

/* A call, with another inside of it, both with one trace context, of which the call's number is a part. */
static void call(unsigned who, unsigned round)
{
    struct span outer, inner;
    struct thread *thread = recording();
    if (!thread)
        abort();
    uint32_t text = text_number(who, round);
    if (!span_begin(&outer, thread, OUTER, stack_number(text, round), text))
        abort();
    struct trace_context context = {who + 1, round + 1, outer.call, who % 2};
    trace_context_begin(thread, outer.index, outer.call, &context, NULL);
    if (!span_begin(&inner, thread, INNER, 0, 0) || !span_stop(&inner))
        abort();
    trace_context_begin(thread, inner.index, inner.call, &context, NULL);
    trace_context_end(thread, inner.call, inner.call);
    span_record(&inner, round, 0);
    if (!span_stop(&outer))
        abort();
    trace_context_end(thread, outer.call, outer.call);
    span_record(&outer, 0, 0);
    recorder_count(thread, COUNTED);
    add(&made->calls, 2);
    add(&made->counted, 1);
}

static void *call_a_few(void *who)
{
    for (unsigned round = 0; round < SHORT_CALLS; round++)
        call((unsigned)(uintptr_t)who, round);
    add(&made->threads, 1);
    return NULL;
}

static void run_short_thread(unsigned who)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, call_a_few, (void *)(uintptr_t)who) || pthread_join(thread, NULL))
        abort();
}

static void *call_often(void *who)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        call((unsigned)(uintptr_t)who, round);
        if (round % SHORT_EVERY == 0)
            run_short_thread(THREADS + (unsigned)(uintptr_t)who);
    }
    add(&made->threads, 1);
    return NULL;
}

/* A child's experiment is read as another's is: it ends as a program does. */
static void be_child(void)
{
    recorder_forked();
    for (unsigned round = 0; round < CHILD_CALLS; round++)
        call(100, round);
    if (!alone)
        run_short_thread(101);
    add(&made->children, 1);
    exit(0);
}

static void fork_once(void)
{
    int status = -1;
    recorder_forks();
    pid_t child = fork();
    if (child == 0)
        be_child();
    recorder_has_forked();
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        abort();
}

static char *read_head(const char *path, size_t *bytes)
{
    static char text[256 * 1024];
    FILE *file = fopen(path, "r");
    if (!file)
        abort();
    *bytes = fread(text, 1, sizeof text, file);
    fclose(file);
    return text;
}

static void begin(const char *directory, const char *head_path)
{
    size_t bytes;
    char *head = read_head(head_path, &bytes);
    struct reading now = {clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_THREAD_CPUTIME_ID)};
    struct recorder_settings settings = {
        .directory = directory,
        .founder = directory,
        .lineage = "",
        .stack_kept = 1,
        .trigger_above_ns = UINT64_MAX,
        .trigger_errors = "",
        .sample_every_ns = 1000000,
        .begun_wall_ns = now.wall_ns,
        .begun_cpu_ns = now.cpu_ns,
    };
    if (follow_choose("on", "") || recorder_begin(&settings) || recorder_describe(head, bytes) ||
        recorder_map(map, sizeof map - 1))
        abort();
}

int main(int count, char **words)
{
    pthread_t threads[THREADS];
    if (count < 3)
        return 2;
    alone = count > 3;
    made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    begin(words[1], words[2]);
    for (uintptr_t who = 0; who < THREADS; who++)
        if (pthread_create(&threads[who], NULL, call_often, (void *)who))
            abort();
    for (int forked = 0; forked < FORKS; forked++)
        fork_once();
    for (int who = 0; who < THREADS; who++)
        pthread_join(threads[who], NULL);
    printf("{\"calls\": %llu, \"counted\": %llu, \"threads\": %llu, \"children\": %llu}\n",
           (unsigned long long)made->calls, (unsigned long long)made->counted, (unsigned long long)made->threads,
           (unsigned long long)made->children);
    return 0;
}
