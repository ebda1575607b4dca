#define _GNU_SOURCE
#include "sampler/objects.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/symbols.h"
#include "core/ticks.h"

enum { MAPPED_AT_MOST = 8192, READ_EVERY_NS = 1000000000 };

/* A part of a file that is mapped and can be executed. */
struct mapped {
    uint64_t begin, end, offset, inode;
    char *path;
    bool is_left_out, is_of_program;
};

void objects_forget(struct objects *objects)
{
    for (unsigned index = 0; index < objects->count; index++)
        free(objects->mapped[index].path);
    free(objects->mapped);
    *objects = (struct objects){.read_ns = objects->read_ns};
}

/* --- /proc/PID/maps */

static void add(struct objects *objects, const struct mapped *part, const char *path)
{
    if (objects->count == objects->room) {
        unsigned room = objects->room ? 2 * objects->room : 64;
        struct mapped *larger = room <= MAPPED_AT_MOST ? realloc(objects->mapped, room * sizeof *larger) : NULL;
        if (!larger)
            return;
        objects->mapped = larger;
        objects->room = room;
    }
    char *kept = strdup(path);
    if (kept) {
        objects->mapped[objects->count] = *part;
        objects->mapped[objects->count++].path = kept;
    }
}

/* The kernel says so of a file that has no name any more; another may have it. */
static void cut_deleted(char *path)
{
    static const char deleted[] = " (deleted)";
    size_t bytes = strlen(path);
    if (bytes > sizeof deleted && strcmp(path + bytes - (sizeof deleted - 1), deleted) == 0)
        path[bytes - (sizeof deleted - 1)] = 0;
}

/* The kernel writes a line's end in a name as octal digits. */
static void decode_lines(char *path)
{
    for (char *code = strstr(path, "\\012"); code; code = strstr(code + 1, "\\012")) {
        *code = '\n';
        memmove(code + 1, code + 4, strlen(code + 4) + 1);
    }
}

const char *object_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Adds the part if it can be executed. Returns its path, empty if it is of no file, nor the kernel's code for programs. */
static const char *read_line(struct objects *objects, char *line, struct mapped *part)
{
    char permissions[5] = "";
    int path = 0;
    *part = (struct mapped){0};
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64 " %n", &part->begin, &part->end, permissions,
               &part->offset, &part->inode, &path) < 5 || !path || (line[path] != '/' && strcmp(line + path, "[vdso]")))
        return "";
    cut_deleted(line + path);
    decode_lines(line + path);
    if (permissions[2] == 'x')
        add(objects, part, line + path);
    return line + path;
}

/* The interpreter's data lie in its own parts of memory, or in one without a name behind these. */
static void read_lines(struct objects *objects, FILE *maps, uint64_t runtime, char **interpreter)
{
    char *line = NULL;
    size_t bytes = 0;
    struct mapped part;
    while (getline(&line, &bytes, maps) > 0) {
        const char *path = read_line(objects, line, &part);
        if (*path && part.begin <= runtime) {
            free(*interpreter);
            *interpreter = strdup(path);
        }
    }
    free(line);
}

static bool is_in(const char *path, const char *directory, size_t bytes)
{
    return bytes && strncmp(path, directory, bytes) == 0;
}

/* It computes nothing of its own: it only tells where variables of threads are. */
static bool is_loader(const char *path)
{
    return strncmp(object_name(path), "ld-", 3) == 0;
}

static void leave_out(struct objects *objects, const char *interpreter)
{
    static const char recorder[] = "/cext/libinterpose.so";
    const char *own = "";
    size_t own_bytes = 0;
    for (unsigned index = 0; index < objects->count && !own_bytes; index++) {
        size_t bytes = strlen(objects->mapped[index].path);
        own = objects->mapped[index].path;
        if (bytes > sizeof recorder && strcmp(own + bytes - (sizeof recorder - 1), recorder) == 0)
            own_bytes = bytes - (sizeof recorder - 2);
    }
    for (unsigned index = 0; index < objects->count; index++) {
        struct mapped *part = &objects->mapped[index];
        bool is_interpreter = interpreter && strcmp(part->path, interpreter) == 0;
        part->is_left_out = is_interpreter || is_loader(part->path) || is_in(part->path, own, own_bytes);
    }
}

static void find_program(struct objects *objects, pid_t pid)
{
    char path[32], program[4096];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t bytes = readlink(path, program, sizeof program - 1);
    program[bytes > 0 ? bytes : 0] = 0;
    cut_deleted(program);
    for (unsigned index = 0; index < objects->count; index++)
        objects->mapped[index].is_of_program = strcmp(objects->mapped[index].path, program) == 0;
}

/* Nothing, if the thread has ended. */
static struct objects read_maps(pid_t thread, uint64_t runtime)
{
    struct objects found = {.read_ns = clock_ns(CLOCK_MONOTONIC)};
    char path[32], *interpreter = NULL;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)thread);
    FILE *maps = fopen(path, "re");
    if (!maps)
        return found;
    read_lines(&found, maps, runtime, &interpreter);
    leave_out(&found, interpreter);
    if (!runtime)
        find_program(&found, thread);
    fclose(maps);
    free(interpreter);
    return found;
}

static bool are_same(const struct objects *one, const struct objects *other)
{
    bool is_same = one->count == other->count;
    for (unsigned index = 0; is_same && index < one->count; index++) {
        const struct mapped *a = &one->mapped[index], *b = &other->mapped[index];
        is_same = a->begin == b->begin && a->end == b->end && a->offset == b->offset && a->inode == b->inode && !strcmp(a->path, b->path);
    }
    return is_same;
}

/* Whether it is other code than before. What is known stays, if there is nothing to read. */
static bool read_again(struct objects *objects, pid_t thread, uint64_t runtime)
{
    struct objects now = read_maps(thread, runtime);
    bool is_same = !now.count || are_same(objects, &now);
    if (now.count) {
        objects_forget(objects);
        *objects = now;
    }
    return !is_same;
}

bool objects_read_again(struct objects *objects, pid_t thread, uint64_t runtime)
{
    return objects->count && clock_ns(CLOCK_MONOTONIC) - objects->read_ns > READ_EVERY_NS && read_again(objects, thread, runtime);
}

/* --- functions */

static const struct mapped *part_at(const struct objects *objects, uint64_t address)
{
    for (unsigned index = 0; index < objects->count; index++)
        if (objects->mapped[index].begin <= address && address < objects->mapped[index].end)
            return &objects->mapped[index];
    return NULL;
}

/* The file at `path`; -1 if another one is there. */
static int open_same(const char *path, const struct mapped *part)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (file >= 0 && (fstat(file, &status) || !S_ISREG(status.st_mode) || status.st_ino != part->inode)) {
        close(file);
        return -1;
    }
    return file;
}

/* The file as the process sees it or, if it changed its root since, as we do; -1 if another one is there now. */
static int open_mapped(pid_t pid, const struct mapped *part)
{
    char path[4096 + 32];
    bool is_file = part->path[0] == '/';
    if (!is_file || snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, part->path) >= (int)sizeof path)
        return -1;
    int file = open_same(path, part);
    return file >= 0 ? file : open_same(part->path, part);
}

static void name_function(pid_t pid, const struct mapped *part, uint64_t address, struct native_function *found)
{
    struct symbol symbol;
    uint64_t moved = part->begin - part->offset; /* from places in the file to addresses */
    int file = open_mapped(pid, part);
    if (file < 0)
        return;
    if (symbols_find(file, address - moved, &symbol, found->name, sizeof found->name) && symbol.begin + moved <= address &&
        address < symbol.end + moved) {
        found->begin = symbol.begin + moved > part->begin ? symbol.begin + moved : part->begin;
        found->end = symbol.end + moved < part->end ? symbol.end + moved : part->end;
    }
    close(file);
}

bool objects_find(struct objects *objects, pid_t pid, uint64_t runtime, uint64_t address, struct native_function *found,
                  bool *is_new)
{
    const struct mapped *part = part_at(objects, address);
    *is_new = !part && clock_ns(CLOCK_MONOTONIC) - objects->read_ns > READ_EVERY_NS;
    if (*is_new) {
        read_again(objects, pid, runtime);
        part = part_at(objects, address);
    }
    if (!part)
        return false;
    *found = (struct native_function){part->begin, part->end, part->is_left_out ? NULL : part->path, part->is_of_program, ""};
    if (found->path)
        name_function(pid, part, address, found);
    return true;
}
