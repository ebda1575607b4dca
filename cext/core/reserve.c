#define _GNU_SOURCE
#include "core/reserve.h"

#include <sys/statvfs.h>

#include "core/fields.h"

static uint64_t wanted_bytes;

void reserve_choose(uint64_t bytes)
{
    wanted_bytes = bytes;
}

/* A file system that does not say how large it is has no end that is known here. */
static uint64_t reserve_of(const struct statvfs *status)
{
    uint64_t part = (uint64_t)status->f_blocks * status->f_frsize / RESERVE_PARTS;
    if (!status->f_blocks || wanted_bytes != RESERVE_AUTO)
        return status->f_blocks ? wanted_bytes : 0;
    return part > RESERVE_LEAST_BYTES ? part : RESERVE_LEAST_BYTES;
}

uint64_t reserve_on(const char *directory)
{
    struct statvfs status;
    return wanted_bytes && statvfs(directory, &status) == 0 ? reserve_of(&status) : 0;
}

int reserve_allows(int opened, uint64_t bytes)
{
    struct statvfs status;
    if (!wanted_bytes || fstatvfs(opened, &status))
        return 0;
    uint64_t free_bytes = (uint64_t)status.f_bavail * status.f_frsize, left_bytes = reserve_of(&status);
    return left_bytes && free_bytes < left_bytes + bytes ? RESERVE_REACHED : 0;
}
