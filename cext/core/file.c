#define _GNU_SOURCE
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/open_file.h"
#include "core/reserve.h"

/* Its descriptor; -1 with errno set. */
static int create(struct grown_file *file, const char *directory, const char *name)
{
    struct stat status;
    file->bytes = 0;
    int opened = file_open_in(file->path, directory, name, O_RDWR | O_CREAT | O_EXCL);
    if (opened < 0)
        return -1;
    int failed = file_give_mode(opened, &status);
    if (failed) {
        close(opened);
        errno = failed;
        return -1;
    }
    file->device = status.st_dev;
    file->inode = status.st_ino;
    return opened;
}

int file_create(struct grown_file *file, const char *directory, const char *name)
{
    int opened = create(file, directory, name);
    if (opened < 0)
        return errno;
    close(opened);
    return 0;
}

/* For file systems without fallocate(2). */
static int write_zeros(int opened, uint64_t from, uint64_t to)
{
    static const char zeros[4096];
    while (from < to) {
        size_t most = to - from < sizeof zeros ? to - from : sizeof zeros;
        ssize_t done = pwrite(opened, zeros, most, (off_t)from);
        if (done <= 0)
            return done < 0 ? errno : ENOSPC;
        from += (uint64_t)done;
    }
    return 0;
}

/* The beginning of every file may always be taken: with less than 200 KiB a process can say at least that it was not
   recorded. */
static int may_grow(const struct grown_file *file, int opened, uint64_t bytes)
{
    if (!file_within_limit(bytes))
        return EFBIG;
    return bytes > WINDOW_BYTES ? reserve_allows(opened, bytes - file->bytes) : 0;
}

static int grow(struct grown_file *file, int opened, uint64_t bytes)
{
    int failed = may_grow(file, opened, bytes);
    if (failed)
        return failed;
    failed = EINTR;
    for (int tries = 0; failed == EINTR && tries < FILE_TRIES; tries++)
        failed = fallocate(opened, 0, (off_t)file->bytes, (off_t)(bytes - file->bytes)) ? errno : 0;
    if (failed == EOPNOTSUPP || failed == ENOSYS || failed == EINTR) /* which a write into a file is not stopped by */
        failed = write_zeros(opened, file->bytes, bytes);
    if (!failed)
        file->bytes = bytes;
    return failed;
}

static bool still_ours(const struct grown_file *file, int opened)
{
    struct stat status;
    return fstat(opened, &status) == 0 && status.st_dev == file->device && status.st_ino == file->inode &&
           (uint64_t)status.st_size >= file->bytes;
}

static int write_at(int opened, uint64_t at, const char *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t written = pwrite(opened, data + done, bytes - done, (off_t)(at + done));
        if (written <= 0 && errno != EINTR)
            return written < 0 ? errno : ENOSPC;
        done += written > 0 ? (size_t)written : 0;
    }
    return 0;
}

static int append(struct grown_file *file, int opened, const void *head, size_t head_bytes, const void *data,
                  size_t bytes)
{
    if (!still_ours(file, opened))
        return ESTALE;
    int failed = may_grow(file, opened, file->bytes + head_bytes + bytes);
    if (failed)
        return failed;
    failed = write_at(opened, file->bytes, head, head_bytes);
    failed = failed ? failed : write_at(opened, file->bytes + head_bytes, data, bytes);
    if (!failed)
        file->bytes += head_bytes + bytes;
    else if (ftruncate(opened, (off_t)file->bytes)) /* a part of a block is no use to anybody */
        return errno;
    return failed;
}

int file_append(struct grown_file *file, const void *head, size_t head_bytes, const void *data, size_t bytes)
{
    int opened = file_open(file->path, O_RDWR);
    if (opened < 0)
        return errno;
    int failed = append(file, opened, head, head_bytes, data, bytes);
    close(opened);
    return failed;
}

static int replace(struct grown_file *file, int opened, uint64_t at, const char *head, size_t head_bytes,
                   const char *data, size_t bytes)
{
    static const char zeros[256];
    if (!still_ours(file, opened))
        return ESTALE;
    if (!file_within_limit(at + head_bytes + bytes))
        return EFBIG;
    int failed = write_at(opened, at, zeros, head_bytes);
    failed = failed ? failed : write_at(opened, at + head_bytes, data, bytes);
    return failed ? failed : write_at(opened, at, head, head_bytes);
}

int file_replace(struct grown_file *file, uint64_t at, const void *head, size_t head_bytes, const void *data,
                 size_t bytes)
{
    int opened = file_open(file->path, O_RDWR);
    if (opened < 0)
        return errno;
    int failed = replace(file, opened, at, head, head_bytes, data, bytes);
    close(opened);
    return failed;
}

int file_grow(struct grown_file *file, uint64_t bytes)
{
    int opened = file_open(file->path, O_RDWR);
    if (opened < 0)
        return errno;
    int failed = still_ours(file, opened) ? grow(file, opened, bytes) : ESTALE;
    close(opened);
    return failed;
}

/* The descriptor is closed. */
static void *map(struct grown_file *file, int opened, uint64_t offset, size_t bytes, size_t real)
{
    void *mapped = MAP_FAILED;
    int failed = 0;
    if (opened < 0)
        return NULL;
    if (!still_ours(file, opened))
        failed = ESTALE;
    else if (offset + real > file->bytes)
        failed = grow(file, opened, offset + real);
    if (!failed) {
        mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened, (off_t)offset);
        failed = mapped == MAP_FAILED ? errno : 0;
    }
    close(opened);
    errno = failed;
    return failed ? NULL : mapped;
}

void *file_map(struct grown_file *file, uint64_t offset, size_t bytes, size_t real)
{
    return map(file, file_open(file->path, O_RDWR), offset, bytes, real);
}

void *file_create_mapped(struct grown_file *file, const char *directory, const char *name, size_t bytes, size_t real)
{
    return map(file, create(file, directory, name), 0, bytes, real);
}

static bool is_a_head(const struct file_head *head, size_t bytes)
{
    return head->magic == FILE_MAGIC && head->version == FORMAT_VERSION && head->head_bytes == bytes;
}

struct file_head *file_map_head(const char *directory, const char *name, size_t bytes)
{
    char path[PATH_BYTES];
    struct stat status;
    int opened = file_open_in(path, directory, name, O_RDWR);
    if (opened < 0)
        return NULL;
    void *mapped = MAP_FAILED;
    if (fstat(opened, &status) == 0 && status.st_uid == geteuid() && status.st_size >= (off_t)bytes)
        mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
    close(opened);
    if (mapped != MAP_FAILED && !is_a_head(mapped, bytes)) {
        munmap(mapped, bytes);
        mapped = MAP_FAILED;
    }
    return mapped == MAP_FAILED ? NULL : mapped;
}
