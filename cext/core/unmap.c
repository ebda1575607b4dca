#define _GNU_SOURCE
#include "core/unmap.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/own_thread.h"

struct region {
    uintptr_t begin, end;
    char directory[4096];
};

static struct {
    struct {
        uintptr_t begin, end;
    } *regions;
    size_t count, room;
} retired;

/* A line of /proc/self/maps that names a file. */
static bool parse(const char *line, struct region *region)
{
    char path[4096];
    unsigned long begin, end;
    if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %4095[^\n]", &begin, &end, path) != 3 || path[0] != '/')
        return false;
    region->begin = begin;
    region->end = end;
    *strrchr(path, '/') = 0;
    strcpy(region->directory, path);
    return true;
}

static bool find_directory(FILE *maps, uintptr_t inside, char directory[4096])
{
    char *line = NULL;
    size_t room = 0;
    struct region region;
    bool found = false;
    while (!found && getline(&line, &room, maps) > 0)
        if (parse(line, &region) && region.begin <= inside && inside < region.end) {
            strcpy(directory, region.directory);
            found = true;
        }
    free(line);
    return found;
}

static bool keep(uintptr_t begin, uintptr_t end)
{
    if (retired.count == retired.room) {
        size_t room = retired.room ? 2 * retired.room : 64;
        void *larger = realloc(retired.regions, room * sizeof *retired.regions);
        if (!larger)
            return false;
        retired.regions = larger;
        retired.room = room;
    }
    retired.regions[retired.count].begin = begin;
    retired.regions[retired.count++].end = end;
    return true;
}

static void forget_earlier(void)
{
    while (retired.count) {
        retired.count--;
        munmap((void *)retired.regions[retired.count].begin,
               retired.regions[retired.count].end - retired.regions[retired.count].begin);
    }
}

static void find_regions(FILE *maps, const char *directory)
{
    char *line = NULL;
    size_t room = 0;
    struct region region;
    while (getline(&line, &room, maps) > 0)
        if (parse(line, &region) && strcmp(region.directory, directory) == 0)
            keep(region.begin, region.end);
    free(line);
}

void retire_files(const void *inside)
{
    char directory[4096];
    forget_earlier();
    FILE *maps = fopen(OWN_PROC "/maps", "re");
    if (!maps)
        return;
    if (find_directory(maps, (uintptr_t)inside, directory)) {
        rewind(maps);
        find_regions(maps, directory);
    }
    fclose(maps);
    for (size_t index = 0; index < retired.count; index++)
        mmap((void *)retired.regions[index].begin, retired.regions[index].end - retired.regions[index].begin,
             PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
