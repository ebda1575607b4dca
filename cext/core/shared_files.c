#define _GNU_SOURCE
#include "core/shared_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/own_thread.h"

/* PROCMAP_QUERY of linux/fs.h, which older headers lack. The kernel passes over all other mappings itself; to read the text of
   all takes ten times as long. */
struct mapping_query {
    uint64_t bytes, flags, address;
    uint64_t begin, end, permissions, page_bytes, offset, inode;
    uint32_t major, minor, name_bytes, build_id_bytes;
    uint64_t name, build_id;
};

enum { IS_WRITABLE = 2, IS_SHARED = 8, OR_NEXT = 16, HAS_FILE = 32 };

#define QUERY_MAPPING _IOWR('f', 17, struct mapping_query)

int shared_files_open(pid_t pid)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

int shared_files_next(int list, uint64_t *from, char *path, size_t bytes)
{
    struct mapping_query query = {
        .bytes = sizeof query,
        .flags = IS_WRITABLE | IS_SHARED | OR_NEXT | HAS_FILE,
        .address = *from,
        .name_bytes = (uint32_t)bytes,
        .name = (uint64_t)(uintptr_t)path,
    };
    path[0] = 0;
    if (ioctl(list, QUERY_MAPPING, &query) < 0)
        return errno == ENOENT ? 0 : SHARED_FILES_UNKNOWN;
    *from = query.end;
    return 1;
}

int mapping_is_writable(uintptr_t address, uintptr_t *begin, uintptr_t *end)
{
    struct mapping_query query = {.bytes = sizeof query, .address = address};
    int list = open(OWN_PROC "/maps", O_RDONLY | O_CLOEXEC);
    int failed = list < 0 || ioctl(list, QUERY_MAPPING, &query) < 0 ? errno : 0;
    if (list >= 0)
        close(list);
    if (failed)
        return failed == ENOENT ? 0 : SHARED_FILES_UNKNOWN;
    *begin = query.begin;
    *end = query.end;
    return (query.permissions & IS_WRITABLE) != 0;
}
