#define _GNU_SOURCE
#include "core/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fields.h"
#include "core/moved.h"
#include "core/reserve.h"

static mode_t file_mode = 0600, directory_mode = 0700;

void files_begin(bool group_reads)
{
    file_mode = group_reads ? 0640 : 0600;
    directory_mode = group_reads ? S_ISGID | 0750 : 0700;
}

/* A descriptor above those that a program uses, at once: one that it redirects or closes by its number in another
   thread must never be ours for longer than that takes. */
static int lifted(int low)
{
    int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
    if (high < 0)
        return low; /* the limit is lower */
    close(low);
    return high;
}

static int open_again(const char *path, int flags)
{
    int opened = open(path, flags, 0600);
    for (int tries = 1; opened < 0 && errno == EINTR && tries < FILE_TRIES; tries++)
        opened = open(path, flags, 0600);
    return opened;
}

static __attribute__((noinline)) int open_moved(const char *path, int flags)
{
    char room[PATH_BYTES];
    return open_again(moved_path(path, room), flags);
}

/* If a directory above the experiment was renamed, open the file where it is now. */
int file_open(const char *path, int flags)
{
    flags |= O_CLOEXEC | O_NOFOLLOW;
    int opened = moved_any() ? open_moved(path, flags) : open_again(path, flags);
    if (opened < 0 && (errno == ENOENT || errno == ENOTDIR) && moved_find())
        opened = open_moved(path, flags);
    return lifted(opened);
}

int file_rename(const char *from, const char *to)
{
    char rooms[2][PATH_BYTES];
    return rename(moved_path(from, rooms[0]), moved_path(to, rooms[1])) ? errno : 0;
}

int file_open_to_read(const char *path)
{
    return lifted(open_again(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

int file_open_in(char path[PATH_BYTES], const char *directory, const char *name, int flags)
{
    if (snprintf(path, PATH_BYTES, "%s/%s", directory, name) >= PATH_BYTES) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return file_open(path, flags);
}

int file_give_mode(int opened, struct stat *status)
{
    if (fstat(opened, status))
        return errno;
    bool has_mode = (status->st_mode & 07777) == file_mode; /* usually, unless the umask took something from it */
    return has_mode || fchmod(opened, file_mode) == 0 ? 0 : errno;
}

bool file_within_limit(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
}

bool file_read(const char *path, char *text, size_t bytes)
{
    int opened = file_open(path, O_RDONLY);
    if (opened < 0)
        return false;
    errno = 0;
    ssize_t got = read(opened, text, bytes - 1);
    int failed = errno;
    close(opened);
    errno = failed;
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

/* --- directories */

int directory_create(const char *path)
{
    char room[PATH_BYTES];
    const char *now = moved_path(path, room);
    return mkdir(now, 0700) || chmod(now, directory_mode) ? errno : 0;
}

int directory_may_grow(const char *path)
{
    int opened = file_open(path, O_RDONLY | O_DIRECTORY);
    int failed = opened < 0 ? errno : reserve_allows(opened, 0);
    if (opened >= 0)
        close(opened);
    return failed;
}

static void discard(const char *directory, const char *name)
{
    char file[PATH_BYTES];
    for (int is_new = 0; is_new < 2; is_new++)
        if (snprintf(file, sizeof file, is_new ? "%s/%s.new" : "%s/%s", directory, name) < PATH_BYTES)
            unlink(file);
}

void directory_discard(const char *path)
{
    for (int type = 0; type < DATA_TYPES; type++)
        discard(path, data_types[type].name);
    discard(path, "log.xml");
    discard(path, "map.xml");
    rmdir(path);
}
