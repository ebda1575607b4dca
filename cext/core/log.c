#define _GNU_SOURCE
#include "core/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/document.h"
#include "core/own_thread.h"
#include "core/recorder.h"
#include "core/redact.h"
#include "core/session.h"
#include "core/trace_contexts.h"

enum { EVENT_BYTES = 1024 };

/* What the log says of the end takes less. */
enum { ENDING_BYTES = 4096, ENDING_TRIES = 10 };

/* The longest text of code without a file, the limit for all of them, and for the list of mappings. */
enum { TEXT_BYTES = 256 * 1024, TEXTS_BYTES = 16 * 1024 * 1024, OBJECTS_BYTES = 4 * 1024 * 1024 };

static const char log_end[] = "</experiment>\n", map_end[] = "</map>\n";

static struct {
    char *text; /* of every log of this process and its forked children */
    size_t bytes;
    bool objects;
} head;

/* --- events */

static int event_of(const char *directory, const char *kind, const char *attributes)
{
    char text[EVENT_BYTES];
    int bytes = snprintf(text, sizeof text, "  <event kind=\"%s\" time_ns=\"%llu\" %s/>\n%s", kind,
                         (unsigned long long)clock_ns(CLOCK_MONOTONIC), attributes, log_end);
    return bytes < (int)sizeof text ? xml_append(directory, "log.xml", log_end, text, (size_t)bytes) : EMSGSIZE;
}

int log_event(const char *kind, const char *attributes)
{
    return event_of(session.directory, kind, attributes);
}

void log_founder_event(const char *kind, const char *attributes)
{
    event_of(session.founder, kind, attributes);
}

void log_ending(const char *kind, const char *attributes)
{
    int failed = EWOULDBLOCK;
    for (unsigned tries = 0; failed == EWOULDBLOCK && tries < ENDING_TRIES; tries++)
        failed = log_event(kind, attributes);
}

void log_stopped(const char *why)
{
    char attributes[256];
    snprintf(attributes, sizeof attributes, "why=\"%s\"", why);
    log_event("stopped", attributes);
}

void recorder_say(const char *kind, const char *attributes)
{
    int saved = errno;
    if (recorder_directory())
        log_event(kind, attributes);
    errno = saved;
}

void recorder_warn_once(uint32_t *warned, const char *text)
{
    char attributes[256];
    if (__atomic_load_n(warned, __ATOMIC_RELAXED) == recorder.serial ||
        __atomic_exchange_n(warned, recorder.serial, __ATOMIC_RELAXED) == recorder.serial)
        return;
    snprintf(attributes, sizeof attributes, "text=\"%s\"", text);
    recorder_say("warning", attributes);
}

/* --- the documents */

/* By its inode; 0 if unknown. A forked child may be in another one than its parent. */
static unsigned long long pid_namespace(void)
{
    struct stat found;
    return stat(OWN_PROC "/ns/pid", &found) ? 0 : found.st_ino;
}

static int write_log(void)
{
    char process[1024];
    uint64_t since_ns = clock_ns(CLOCK_MONOTONIC) - session.begun.wall_ns;
    session.time_ns = clock_ns(CLOCK_REALTIME) - since_ns;
    trace_contexts_identify();
    int bytes = snprintf(process, sizeof process,
                         "  <process pid=\"%d\" ppid=\"%d\" start_ns=\"%llu\" time_ns=\"%llu\" parent=\"%s\" "
                         "lineage=\"%s\" pid_namespace=\"%llu\"/>\n%s",
                         (int)session.process, (int)getppid(), (unsigned long long)session.begun.wall_ns,
                         (unsigned long long)session.time_ns, session.parent, session.lineage, pid_namespace(), log_end);
    const struct iovec pieces[] = {{head.text, head.bytes}, {process, (size_t)bytes}};
    return file_write(session.directory, "log.xml", pieces, 2, ENDING_BYTES);
}

static int write_map(void)
{
    char empty[] = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<map>\n</map>\n";
    const struct iovec piece = {empty, sizeof empty - 1};
    return file_write(session.directory, "map.xml", &piece, 1, 0);
}

int log_begin(void)
{
    int failed = write_map(); /* first: wherever there is a log, the process has begun */
    return failed ? failed : write_log();
}

int log_describe(const char *text, size_t bytes)
{
    free(head.text);
    head.text = malloc(bytes);
    if (!head.text)
        return ENOMEM;
    memcpy(head.text, text, bytes);
    head.bytes = bytes;
    log_objects();
    return log_begin();
}

int recorder_map(const char *text, size_t bytes)
{
    return xml_append(session.directory, "map.xml", map_end, text, bytes);
}

/* --- notes */

void log_choose_objects(bool noted)
{
    head.objects = noted;
}

void log_objects(void)
{
    if (head.objects && !redact_is_on())
        file_copy(session.directory, "objects", OWN_PROC "/maps", OBJECTS_BYTES);
}

static bool may_note(void)
{
    return !session_stopped() && session_is_ours();
}

/* As it may stand in XML; false for what would need more than that. */
static bool is_plain(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127 || strchr("<>&\"", *text))
            return false;
    return true;
}

/* May the text be written as it is? */
static bool is_kept_whole(const char *text, size_t bytes)
{
    size_t left = bytes;
    char *redacted = redact(text, &left);
    bool whole = !redacted && left;
    free(redacted);
    return whole;
}

void recorder_note_root(const char *path)
{
    char text[PATH_BYTES + 64];
    int saved = errno, bytes = snprintf(text, sizeof text, "  <root path=\"%s\"/>\n%s", path, log_end);
    if (bytes < (int)sizeof text && is_plain(path) && may_note() && is_kept_whole(path, strlen(path)))
        xml_append(session.directory, "log.xml", log_end, text, (size_t)bytes);
    errno = saved;
}

void recorder_note_text(uint32_t name, const char *text, size_t bytes)
{
    static const char nothing[3];
    uint32_t number_and_bytes[2] = {name, (uint32_t)bytes};
    const struct iovec pieces[] = {{number_and_bytes, sizeof number_and_bytes},
                                   {(void *)(uintptr_t)text, bytes},
                                   {(void *)(uintptr_t)nothing, -bytes & 3}};
    int saved = errno;
    if (name && bytes <= TEXT_BYTES && may_note() && is_kept_whole(text, bytes))
        file_add(session.directory, "dyntext", pieces, 3, TEXTS_BYTES);
    errno = saved;
}
