#define _GNU_SOURCE
#include "core/moved.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/own_thread.h"

/* The beginning of paths as files were created, and the beginning that replaces it. */
struct move {
    char from[PATH_BYTES], to[PATH_BYTES];
};

static struct {
    uint32_t busy;
    uintptr_t mapped;
    char was[PATH_BYTES];      /* the path of the mapped file, as it was created */
    char text[2 * PATH_BYTES]; /* a part of the list of mappings */
    struct move moves[2];      /* one is read, the other one may be written */
    const struct move *move;
} moved;

void moved_watch(const char *path, const void *mapped)
{
    snprintf(moved.was, sizeof moved.was, "%s", path);
    moved.mapped = (uintptr_t)mapped;
}

bool moved_any(void)
{
    return __atomic_load_n(&moved.move, __ATOMIC_ACQUIRE) != NULL;
}

const char *moved_path(const char *path, char room[PATH_BYTES])
{
    const struct move *move = __atomic_load_n(&moved.move, __ATOMIC_ACQUIRE);
    size_t from = move ? strlen(move->from) : 0;
    if (!move || strncmp(path, move->from, from) != 0 || (path[from] && path[from] != '/'))
        return path;
    return snprintf(room, PATH_BYTES, "%s%s", move->to, path + from) < PATH_BYTES ? room : path;
}

/* --- the present path */

/* The path in a line of the list, if the line is of the mapping at that address; else NULL. */
static const char *path_in(const char *line, uintptr_t address)
{
    char *rest;
    uintptr_t begin = strtoul(line, &rest, 16), end = *rest == '-' ? strtoul(rest + 1, NULL, 16) : 0;
    return begin <= address && address < end ? strchr(line, '/') : NULL;
}

/* Read the list piece by piece: look at each whole line in `text`, then move the unfinished one to its beginning. */
static const char *find_in_list(int list)
{
    size_t held = 0;
    for (ssize_t got; (got = read(list, moved.text + held, sizeof moved.text - 1 - held)) > 0;) {
        char *line = moved.text, *end;
        held += (size_t)got;
        moved.text[held] = 0;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            const char *path = path_in(line, moved.mapped);
            if (path)
                return path;
        }
        held -= (size_t)(line - moved.text);
        memmove(moved.text, line, held);
    }
    return NULL;
}

static const char *present_path(void)
{
    int list = file_open_to_read(OWN_PROC "/maps");
    const char *path = list < 0 ? NULL : find_in_list(list);
    if (list >= 0)
        close(list);
    return path;
}

/* The lengths of both paths without their common end, which begins at a slash. */
static void cut_same_ends(const char *was, const char *is, size_t *was_bytes, size_t *is_bytes)
{
    size_t one = strlen(was), other = strlen(is);
    *was_bytes = one;
    *is_bytes = other;
    while (one && other && was[one - 1] == is[other - 1]) {
        one--;
        other--;
        if (was[one] == '/') {
            *was_bytes = one;
            *is_bytes = other;
        }
    }
}

static bool take(const char *is)
{
    const struct move *now = moved.move;
    struct move *next = &moved.moves[now == &moved.moves[0]];
    size_t was_bytes, is_bytes;
    cut_same_ends(moved.was, is, &was_bytes, &is_bytes);
    snprintf(next->from, sizeof next->from, "%.*s", (int)was_bytes, moved.was);
    snprintf(next->to, sizeof next->to, "%.*s", (int)is_bytes, is);
    if (now && strcmp(now->from, next->from) == 0 && strcmp(now->to, next->to) == 0)
        return false;
    __atomic_store_n(&moved.move, next, __ATOMIC_RELEASE);
    return true;
}

static bool find_again(void)
{
    char room[PATH_BYTES];
    if (!moved.mapped || access(moved_path(moved.was, room), F_OK) == 0)
        return false;
    const char *is = present_path();
    return is && access(is, F_OK) == 0 && take(is); /* a removed file is listed as "PATH (deleted)" */
}

bool moved_find(void)
{
    int saved = errno;
    if (__atomic_exchange_n(&moved.busy, 1, __ATOMIC_ACQUIRE))
        return false;
    bool found = find_again();
    __atomic_store_n(&moved.busy, 0, __ATOMIC_RELEASE);
    errno = saved;
    return found;
}
