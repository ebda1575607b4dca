#define _GNU_SOURCE
#include "kernel/code_map.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/open_file.h"
#include "core/symbols.h"

enum { MAPPINGS_AT_MOST = 1 << 16, RETURNS_AT_MOST = 1 << 16, NAME_ROOM = 1024 };
enum { RETURN = 1, NO_RETURN };
enum { NO_SITE = UINT32_MAX }; /* there was no room for it */

static bool overlaps(const struct mapping *mapping, uint64_t begin, uint64_t end)
{
    return mapping->begin < end && begin < mapping->end;
}

static void forget_functions(struct code_map *map)
{
    met_forget(&map->functions);
    numbers_clear(&map->returns);
}

static void forget_overlapped(struct code_map *map, uint64_t begin, uint64_t end)
{
    for (size_t place = map->mappings; place > 0; place--) {
        struct mapping *each = &map->mapping[place - 1];
        if (!overlaps(each, begin, end))
            continue;
        free(each->path);
        *each = map->mapping[--map->mappings];
        forget_functions(map);
    }
}

void code_map_add(struct code_map *map, uint64_t begin, uint64_t bytes, uint64_t offset, const char *path)
{
    forget_overlapped(map, begin, begin + bytes);
    if (map->mappings == map->room) {
        size_t room = map->room ? 2 * map->room : 32;
        struct mapping *larger = room > MAPPINGS_AT_MOST ? NULL : realloc(map->mapping, room * sizeof *larger);
        if (!larger)
            return;
        map->mapping = larger;
        map->room = room;
    }
    char *copy = strdup(path);
    if (copy)
        map->mapping[map->mappings++] = (struct mapping){begin, begin + bytes, offset, copy};
}

void code_map_read(struct code_map *map, pid_t pid)
{
    char path[64], rights[8], line[PATH_BYTES + 128];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        uint64_t begin, end, offset;
        int at = 0;
        line[strcspn(line, "\n")] = 0;
        bool is_read = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &begin, &end, rights, &offset, &at) == 4;
        if (is_read && at && strchr(rights, 'x') && line[at] == '/')
            code_map_add(map, begin, end - begin, offset, line + at);
    }
    if (file)
        fclose(file);
}

void code_map_forget(struct code_map *map)
{
    for (size_t place = 0; place < map->mappings; place++)
        free(map->mapping[place].path);
    free(map->mapping);
    forget_functions(map);
    memset(map, 0, sizeof *map);
}

/* --- functions */

static const struct mapping *mapping_of(const struct code_map *map, uint64_t address)
{
    for (size_t place = 0; place < map->mappings; place++)
        if (map->mapping[place].begin <= address && address < map->mapping[place].end)
            return &map->mapping[place];
    return NULL;
}

/* As the process sees it, which may have another root; when it has ended, as we do. */
static int open_mapped(const struct mapping *mapping, pid_t pid)
{
    char path[PATH_BYTES + 32];
    snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, mapping->path);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return file >= 0 ? file : open(mapping->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Its name, and from where to where it goes, within the mapping; without a symbol the name is the file's. */
static struct met_function look_up(const struct mapping *mapping, pid_t pid, uint64_t address, char name[NAME_ROOM])
{
    struct met_function found = {.begin = mapping->begin, .end = mapping->end};
    uint64_t moved = mapping->begin - mapping->offset; /* from places in the file to addresses */
    struct symbol symbol;
    int file = open_mapped(mapping, pid);
    *name = 0;
    if (file >= 0 && symbols_find(file, address - moved, &symbol, name, NAME_ROOM)) {
        found.begin = symbol.begin + moved > found.begin ? symbol.begin + moved : found.begin;
        found.end = symbol.end + moved < found.end ? symbol.end + moved : found.end;
    }
    if (file >= 0)
        close(file);
    if (!*name)
        snprintf(name, NAME_ROOM, "%s", strrchr(mapping->path, '/') + 1);
    return found;
}

uint32_t code_map_site(struct code_map *map, struct kernel_texts *texts, struct kernel_stacks *stacks, pid_t pid, const char *program,
                       uint64_t address)
{
    char name[NAME_ROOM];
    uint32_t met = met_find(&map->functions, address);
    const struct mapping *mapping = met ? NULL : mapping_of(map, address);
    if (!mapping)
        return met == NO_SITE ? 0 : met;
    struct met_function found = look_up(mapping, pid, address, name);
    bool is_of_program = program && strcmp(mapping->path, program) == 0;
    uint32_t file = texts_once(texts, mapping->path), function = texts_once(texts, name);
    uint32_t site = file && function ? kernel_site(stacks, file, function, is_of_program) : 0;
    found.site = site ? site : NO_SITE;
    met_keep(&map->functions, found);
    return site;
}

/* --- calls */

enum { LONGEST_CALL = 7 };

/* Do these bytes end with a call? */
#if defined(__x86_64__)
static bool ends_with_call(const unsigned char *code)
{
    enum { NEAR = 0xe8, NEAR_BYTES = 5, BY_OPERAND = 0xff, KIND = 0x38, CALLS = 0x10 };
    static const int lengths[] = {2, 3, 4, 6, 7}; /* by the sort of operand */
    bool is_call = code[LONGEST_CALL - NEAR_BYTES] == NEAR;
    for (unsigned each = 0; each < sizeof lengths / sizeof *lengths; each++) {
        const unsigned char *at = code + LONGEST_CALL - lengths[each];
        is_call |= at[0] == BY_OPERAND && (at[1] & KIND) == CALLS;
    }
    return is_call;
}
#elif defined(__aarch64__)
static bool ends_with_call(const unsigned char *code)
{
    uint32_t last;
    memcpy(&last, code + LONGEST_CALL - sizeof last, sizeof last);
    return (last & 0xfc000000u) == 0x94000000u || (last & 0xfffffc1fu) == 0xd63f0000u; /* bl, blr */
}
#else
static bool ends_with_call(const unsigned char *code)
{
    (void)code;
    return false;
}
#endif

static bool has_call_before(const struct mapping *mapping, pid_t pid, uint64_t address)
{
    unsigned char code[LONGEST_CALL];
    if (!mapping || address - mapping->begin < LONGEST_CALL)
        return false;
    int file = open_mapped(mapping, pid);
    off_t at = (off_t)(address - mapping->begin + mapping->offset - LONGEST_CALL);
    bool is_read = file >= 0 && pread(file, code, sizeof code, at) == (ssize_t)sizeof code;
    if (file >= 0)
        close(file);
    return is_read && ends_with_call(code);
}

bool code_map_is_return(struct code_map *map, pid_t pid, uint64_t address)
{
    uint32_t known = address ? numbers_find(&map->returns, address) : NO_RETURN;
    if (known)
        return known == RETURN;
    bool is_return = has_call_before(mapping_of(map, address), pid, address);
    if (map->returns.used < RETURNS_AT_MOST)
        numbers_keep(&map->returns, address, is_return ? RETURN : NO_RETURN);
    return is_return;
}
