#define _GNU_SOURCE
#include "kernel/known_descriptors.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/pseudo_terminal.h"

enum { KNOWN_AT_MOST = 1 << 16, PATH_ROOM = 4096 };

static const char UNSEEN[] = "<closed at once>";

static struct known_descriptor *find(const struct known_descriptors *descriptors, int64_t number)
{
    return number >= 0 && (size_t)number < descriptors->room ? &descriptors->known[number] : NULL;
}

static struct known_descriptor *find_or_make(struct known_descriptors *descriptors, int64_t number)
{
    if (number < 0 || number >= KNOWN_AT_MOST)
        return NULL;
    size_t room = descriptors->room ? descriptors->room : 64;
    while (room <= (size_t)number)
        room *= 2;
    if (room > descriptors->room) {
        struct known_descriptor *larger = realloc(descriptors->known, room * sizeof *larger);
        if (!larger)
            return NULL;
        memset(larger + descriptors->room, 0, (room - descriptors->room) * sizeof *larger);
        descriptors->known = larger;
        descriptors->room = room;
    }
    return &descriptors->known[number];
}

void descriptors_open(struct known_descriptors *descriptors, int64_t number, enum kind kind)
{
    struct known_descriptor *known = find_or_make(descriptors, number);
    if (known)
        *known = (struct known_descriptor){.is_known = kind != KIND_COUNT, .kind = kind};
}

static void give_up(struct known_descriptor *known, struct kernel_texts *texts, uint64_t time_ns)
{
    if (known->looked_ns > time_ns && known->detail)
        texts_replace(texts, known->detail, UNSEEN);
    *known = (struct known_descriptor){0};
}

void descriptors_close(struct known_descriptors *descriptors, struct kernel_texts *texts, int64_t number, uint64_t time_ns)
{
    struct known_descriptor *known = find(descriptors, number);
    if (known)
        give_up(known, texts, time_ns);
}

void descriptors_close_range(struct known_descriptors *descriptors, struct kernel_texts *texts, uint64_t from, uint64_t to,
                             uint64_t time_ns)
{
    for (uint64_t number = from; number <= to && number < descriptors->room; number++)
        give_up(&descriptors->known[number], texts, time_ns);
}

/* --- what the kernel says */

static bool is_terminal(const struct stat *status, const char *path)
{
    return S_ISCHR(status->st_mode) && (strncmp(path, "/dev/tty", 8) == 0 || strncmp(path, "/dev/pts/", 9) == 0 ||
                                        strcmp(path, "/dev/console") == 0);
}

static enum kind kind_of(const struct stat *status, const char *path, int64_t number)
{
    bool is_stream = number <= STDERR_FILENO;
    if (S_ISSOCK(status->st_mode))
        return KIND_net;
    if (is_stream || (is_terminal(status, path) && !is_master(status)))
        return KIND_screen;
    return S_ISFIFO(status->st_mode) || is_master(status) ? KIND_process : KIND_file;
}

/* Of what has no path: `<pipe>`, `<eventpoll>`. */
static void shorten(char path[PATH_ROOM])
{
    char *type = strncmp(path, "anon_inode:", 11) == 0 ? path + 11 + (path[11] == '[') : path;
    char named[64];
    if (*path == '/')
        return;
    type[strcspn(type, ":]")] = 0;
    snprintf(named, sizeof named, "<%.40s>", type);
    memcpy(path, named, sizeof named);
}

static bool look_up(pid_t thread, int64_t number, char path[PATH_ROOM], struct stat *status)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)thread, (int)number);
    ssize_t bytes = readlink(link, path, PATH_ROOM - 1);
    path[bytes > 0 ? bytes : 0] = 0;
    return bytes > 0 && stat(link, status) == 0;
}

/* The call that opened it says what it is, except for a terminal and its master: when it is looked up, it may be another one. */
static void learn(struct known_descriptor *known, struct kernel_texts *texts, pid_t thread, int64_t number)
{
    static const char *const streams[] = {"<stdin>", "<stdout>", "<stderr>"};
    char path[PATH_ROOM];
    struct stat status;
    bool is_there = look_up(thread, number, path, &status);
    known->looked_ns = clock_ns(CLOCK_MONOTONIC);
    enum kind found = is_there ? kind_of(&status, path, number) : number <= STDERR_FILENO ? KIND_screen : KIND_file;
    if (is_there)
        shorten(path);
    bool is_of_terminal = found == KIND_screen || (is_there && is_master(&status));
    if (!known->is_known || (known->kind == KIND_file && is_of_terminal))
        known->kind = (uint8_t)found;
    known->is_known = true;
    if (number <= STDERR_FILENO || !is_there)
        known->detail = texts_share(texts, number <= STDERR_FILENO ? streams[number] : UNSEEN);
    else
        known->detail = texts_add(texts, path);
}

struct known_descriptor descriptor_of(struct known_descriptors *descriptors, struct kernel_texts *texts, pid_t thread, int64_t number)
{
    struct known_descriptor *known = find_or_make(descriptors, number);
    if (!known)
        return (struct known_descriptor){.is_known = true, .kind = KIND_file};
    if (!known->looked_ns)
        learn(known, texts, thread, number);
    return *known;
}

void descriptors_copy(struct known_descriptors *to, const struct known_descriptors *from)
{
    for (size_t number = 0; number < from->room; number++)
        if (from->known[number].is_known)
            descriptors_open(to, (int64_t)number, from->known[number].kind);
}

void descriptors_free(struct known_descriptors *descriptors)
{
    free(descriptors->known);
    memset(descriptors, 0, sizeof *descriptors);
}
