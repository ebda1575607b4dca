#define _GNU_SOURCE
#include "core/document.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/open_file.h"
#include "core/reserve.h"

enum { LOCK_NS = 50000000 };

static size_t bytes_of(const struct iovec *pieces, int count)
{
    size_t bytes = 0;
    for (int index = 0; index < count; index++)
        bytes += pieces[index].iov_len;
    return bytes;
}

static int write_whole(int opened, const struct iovec *pieces, int count)
{
    size_t bytes = bytes_of(pieces, count);
    if (!file_within_limit(bytes))
        return EFBIG;
    ssize_t done = writev(opened, pieces, count);
    for (int tries = 1; done < 0 && errno == EINTR && tries < FILE_TRIES; tries++)
        done = writev(opened, pieces, count);
    return done == (ssize_t)bytes ? 0 : done < 0 ? errno : ENOSPC;
}

/* Call this before writing: ext4 writes a file without blocks out to the disk when it replaces another one. A failure is
   ignored, because there may be room all the same. */
static void reserve_space(int opened, const struct iovec *pieces, int count, size_t more)
{
    if (more)
        (void)!fallocate(opened, FALLOC_FL_KEEP_SIZE, 0, (off_t)(bytes_of(pieces, count) + more));
}

/* Under another name, which it has until it is whole. */
static int write_anew(const char *path, const struct iovec *pieces, int count, size_t more)
{
    struct stat status;
    int opened = file_open(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (opened < 0)
        return errno;
    int failed = file_give_mode(opened, &status);
    if (!failed) {
        reserve_space(opened, pieces, count, more);
        failed = write_whole(opened, pieces, count);
    }
    close(opened);
    return failed;
}

int file_write(const char *directory, const char *name, const struct iovec *pieces, int count, size_t more)
{
    char path[PATH_BYTES], anew[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= PATH_BYTES ||
        snprintf(anew, sizeof anew, "%s/%s.new", directory, name) >= PATH_BYTES)
        return ENAMETOOLONG;
    int failed = write_anew(anew, pieces, count, more);
    failed = failed ? failed : file_rename(anew, path);
    if (failed)
        unlink(anew);
    return failed;
}

int file_add(const char *directory, const char *name, const struct iovec *pieces, int count, uint64_t most)
{
    char path[PATH_BYTES];
    struct stat status;
    int opened = file_open_in(path, directory, name, O_WRONLY | O_CREAT | O_APPEND);
    if (opened < 0)
        return errno;
    int failed = file_give_mode(opened, &status);
    size_t bytes = bytes_of(pieces, count);
    if (!failed && (!S_ISREG(status.st_mode) || (uint64_t)status.st_size + bytes > most ||
                    !file_within_limit((uint64_t)status.st_size + bytes)))
        failed = EFBIG;
    failed = failed ? failed : reserve_allows(opened, bytes);
    failed = failed ? failed : write_whole(opened, pieces, count);
    close(opened);
    return failed;
}

void file_copy(const char *directory, const char *name, const char *source, size_t most)
{
    char path[PATH_BYTES], piece[4096];
    struct stat status;
    int from = file_open(source, O_RDONLY);
    int to = from < 0 ? -1 : file_open_in(path, directory, name, O_WRONLY | O_CREAT | O_TRUNC);
    ssize_t got = to >= 0 && file_give_mode(to, &status) ? -1 : 0;
    for (size_t copied = 0; to >= 0 && got >= 0 && copied < most && (got = read(from, piece, sizeof piece)) > 0;
         copied += (size_t)got)
        if (!file_within_limit(copied + (size_t)got) || write(to, piece, (size_t)got) != got)
            break;
    if (to >= 0)
        close(to);
    if (from >= 0)
        close(from);
}

/* --- one writer at a time */

static ssize_t find_last(const char *text, ssize_t bytes, const char *word)
{
    ssize_t length = (ssize_t)strlen(word);
    for (ssize_t at = bytes - length; at >= 0; at--)
        if (memcmp(text + at, word, (size_t)length) == 0)
            return at;
    return -1;
}

/* Nobody else who does the same writes there meanwhile. A holder that keeps it for long, because it is stopped or
   astray, is not waited for: false. If no lock is possible, everybody writes as they come. */
static bool lock_if_soon(int opened)
{
    struct timespec now, until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOCK_NS;
    do {
        if (flock(opened, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return true;
        sched_yield();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - until.tv_sec) * 1000000000 + now.tv_nsec < until.tv_nsec);
    return false;
}

int file_lock(const char *directory, const char *name)
{
    char path[PATH_BYTES];
    int opened = file_open_in(path, directory, name, O_RDONLY);
    if (opened >= 0)
        lock_if_soon(opened);
    return opened;
}

void file_unlock(int opened)
{
    if (opened >= 0) {
        flock(opened, LOCK_UN); /* a child that was forked meanwhile has it as well */
        close(opened);
    }
}

int xml_append(const char *directory, const char *name, const char *closing_tag, const char *text, size_t bytes)
{
    char path[PATH_BYTES], tail[64];
    struct stat status;
    int opened = file_open_in(path, directory, name, O_RDWR);
    if (opened < 0)
        return errno;
    int failed = !lock_if_soon(opened) ? EWOULDBLOCK : fstat(opened, &status) ? errno : 0;
    off_t from = !failed && status.st_size > (off_t)sizeof tail ? status.st_size - (off_t)sizeof tail : 0;
    ssize_t got = failed ? -1 : pread(opened, tail, sizeof tail, from);
    ssize_t at = got > 0 ? find_last(tail, got, closing_tag) : -1;
    if (at < 0)
        failed = failed ? failed : EBADMSG;
    else if (!file_within_limit((uint64_t)status.st_size + bytes))
        failed = EFBIG;
    else if (pwrite(opened, text, bytes, from + at) != (ssize_t)bytes)
        failed = errno ? errno : ENOSPC;
    file_unlock(opened);
    return failed;
}
