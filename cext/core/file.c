#define _GNU_SOURCE
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/recorder.h"
#include "core/reserve.h"

enum { LOCK_NS = 50000000, TRIES = 8 };

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

/* A signal that comes in between is no reason; one that always comes is not waited for. */
static int open_again(const char *path, int flags)
{
    int opened = open(path, flags, 0600);
    for (int tries = 1; opened < 0 && errno == EINTR && tries < TRIES; tries++)
        opened = open(path, flags, 0600);
    return opened;
}

static int open_high(const char *path, int flags)
{
    return lifted(open_again(path, flags | O_CLOEXEC | O_NOFOLLOW));
}

int file_open_to_read(const char *path)
{
    return lifted(open_again(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

static int open_in(char path[PATH_BYTES], const char *directory, const char *name, int flags)
{
    if (snprintf(path, PATH_BYTES, "%s/%s", directory, name) >= PATH_BYTES) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open_high(path, flags);
}

int directory_create(const char *path)
{
    return mkdir(path, 0700) || chmod(path, directory_mode) ? errno : 0;
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

int file_create(struct grown_file *file, const char *directory, const char *name)
{
    struct stat status;
    int opened = open_in(file->path, directory, name, O_RDWR | O_CREAT | O_EXCL);
    if (opened < 0)
        return errno;
    int failed = fchmod(opened, file_mode) || fstat(opened, &status) ? errno : 0;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->bytes = 0;
    close(opened);
    return failed;
}

/* Past the limit the kernel would send SIGXFSZ to the program. */
static bool within_limit(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
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
    if (!within_limit(bytes))
        return EFBIG;
    return bytes > WINDOW_BYTES ? reserve_allows(opened, bytes - file->bytes) : 0;
}

static int grow(struct grown_file *file, int opened, uint64_t bytes)
{
    int failed = may_grow(file, opened, bytes);
    if (failed)
        return failed;
    failed = EINTR;
    for (int tries = 0; failed == EINTR && tries < TRIES; tries++)
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
    int opened = open_high(file->path, O_RDWR);
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
    if (!within_limit(at + head_bytes + bytes))
        return EFBIG;
    int failed = write_at(opened, at, zeros, head_bytes);
    failed = failed ? failed : write_at(opened, at + head_bytes, data, bytes);
    return failed ? failed : write_at(opened, at, head, head_bytes);
}

int file_replace(struct grown_file *file, uint64_t at, const void *head, size_t head_bytes, const void *data,
                 size_t bytes)
{
    int opened = open_high(file->path, O_RDWR);
    if (opened < 0)
        return errno;
    int failed = replace(file, opened, at, head, head_bytes, data, bytes);
    close(opened);
    return failed;
}

int file_grow(struct grown_file *file, uint64_t bytes)
{
    int opened = open_high(file->path, O_RDWR);
    if (opened < 0)
        return errno;
    int failed = still_ours(file, opened) ? grow(file, opened, bytes) : ESTALE;
    close(opened);
    return failed;
}

void *file_map(struct grown_file *file, uint64_t offset, size_t bytes, size_t real)
{
    void *mapped = MAP_FAILED;
    int failed = 0;
    int opened = open_high(file->path, O_RDWR);
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

static bool is_a_head(const struct file_head *head, size_t bytes)
{
    return head->magic == FILE_MAGIC && head->version == FORMAT_VERSION && head->head_bytes == bytes;
}

struct file_head *file_map_head(const char *directory, const char *name, size_t bytes)
{
    char path[PATH_BYTES];
    struct stat status;
    int opened = open_in(path, directory, name, O_RDWR);
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

/* --- series */

/* The file gets its name once it has its head: others find no file, or one that can be read. */
static int give_name(struct grown_file *file, const char *directory, const char *name)
{
    char path[PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= PATH_BYTES)
        return ENAMETOOLONG;
    if (rename(file->path, path))
        return errno;
    memcpy(file->path, path, sizeof path);
    return 0;
}

int series_create(struct series *series, const char *directory, const struct data_type *type, uint32_t first)
{
    char anew[64];
    memset(series, 0, sizeof *series);
    series->window_bytes = type->block_bytes;
    snprintf(anew, sizeof anew, "%s.new", type->name);
    int failed = file_create(&series->file, directory, anew);
    if (failed)
        return failed;
    series->window = file_map(&series->file, 0, series->window_bytes, SPACE_BYTES);
    if (!series->window)
        return errno;
    series->head = (struct file_head *)series->window;
    *series->head = (struct file_head){
        .magic = FILE_MAGIC,
        .version = FORMAT_VERSION,
        .head_bytes = type->head_bytes,
        .record_bytes = type->record_bytes,
        .first = first,
        .window_bytes = type->block_bytes,
    };
    series->end = type->head_bytes;
    series->next = first;
    return give_name(&series->file, directory, type->name);
}

/* Strings have no fixed size: tell readers that the rest of the window is empty. */
static void close_window(struct series *series)
{
    uint64_t left = series->window_at + series->window_bytes - series->end;
    if (series->head->record_bytes == 0 && left >= sizeof(uint32_t))
        memset(series->window + (series->end - series->window_at), 0xff, sizeof(uint32_t));
}

/* The file grows through the rest of the old window, so that this can be closed. */
static int next_window(struct series *series)
{
    uint64_t at = series->window_at + series->window_bytes;
    char *window = file_map(&series->file, at, series->window_bytes, WINDOW_BYTES);
    if (!window)
        return errno;
    close_window(series);
    if (series->window_at && !series->keep_windows)
        munmap(series->window, series->window_bytes);
    series->window = window;
    series->window_at = at;
    series->end = at;
    return 0;
}

/* What a file takes counts where events count; the beginning, which every process has, is left out. */
static void count_growth(uint64_t before, uint64_t after)
{
    uint64_t from = before > WINDOW_BYTES ? before : WINDOW_BYTES;
    if (after > from)
        __atomic_add_fetch(&recorder.control->other_bytes, after - from, __ATOMIC_RELAXED);
}

/* Is there room for `bytes` at the end? 0 or the error's number. */
static int find_room(struct series *series, size_t bytes)
{
    int failed = series->end + bytes > series->window_at + series->window_bytes ? next_window(series) : 0;
    if (failed)
        return failed;
    uint64_t missing = series->end + bytes > series->file.bytes ? series->end + bytes - series->file.bytes : 0;
    uint64_t steps = (missing + SPACE_BYTES - 1) / SPACE_BYTES;
    return steps ? file_grow(&series->file, series->file.bytes + steps * SPACE_BYTES) : 0;
}

static int make_room(struct series *series, size_t bytes)
{
    uint64_t before = series->file.bytes;
    int failed = find_room(series, bytes);
    count_growth(before, series->file.bytes);
    return failed;
}

void *series_extend(struct series *series, size_t bytes)
{
    int saved = errno, failed = make_room(series, bytes);
    errno = failed ? failed : saved;
    if (failed)
        return NULL;
    void *record = series->window + (series->end - series->window_at);
    series->end += bytes;
    series->next++;
    return record;
}

uint32_t series_records(struct series *series, uint32_t count, void **records)
{
    uint64_t size = series->head->record_bytes, window = series->window_bytes, head = series->head->head_bytes;
    char *found = series_extend(series, count * size);
    if (!found)
        return 0;
    uint64_t at = series->end - count * size;
    uint64_t number = 1 + (at < window ? (at - head) / size
                                       : (window - head) / size + (at / window - 1) * (window / size) + at % window / size);
    series->next = (uint32_t)number + count;
    *records = found;
    return (uint32_t)number;
}

/* --- XML */

static int write_whole(int opened, const struct iovec *pieces, int count)
{
    size_t bytes = 0;
    for (int index = 0; index < count; index++)
        bytes += pieces[index].iov_len;
    if (!within_limit(bytes))
        return EFBIG;
    ssize_t done = writev(opened, pieces, count);
    for (int tries = 1; done < 0 && errno == EINTR && tries < TRIES; tries++)
        done = writev(opened, pieces, count);
    return done == (ssize_t)bytes ? 0 : done < 0 ? errno : ENOSPC;
}

/* Under another name, which it has until it is whole. */
static int write_anew(const char *path, const struct iovec *pieces, int count, size_t more)
{
    int opened = open_high(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (opened < 0)
        return errno;
    int failed = fchmod(opened, file_mode) ? errno : write_whole(opened, pieces, count);
    off_t end = failed || !more ? -1 : lseek(opened, 0, SEEK_END);
    if (end >= 0)
        (void)!fallocate(opened, FALLOC_FL_KEEP_SIZE, end, (off_t)more); /* without it there may be room all the same */
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
    if (!failed && rename(anew, path) == 0)
        return 0;
    failed = failed ? failed : errno;
    unlink(anew);
    return failed;
}

int directory_may_grow(const char *path)
{
    int opened = open_high(path, O_RDONLY | O_DIRECTORY);
    int failed = opened < 0 ? errno : reserve_allows(opened, 0);
    if (opened >= 0)
        close(opened);
    return failed;
}

bool file_read(const char *path, char *text, size_t bytes)
{
    int opened = open_high(path, O_RDONLY);
    if (opened < 0)
        return false;
    ssize_t got = read(opened, text, bytes - 1);
    close(opened);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

int file_add(const char *directory, const char *name, const struct iovec *pieces, int count, uint64_t most)
{
    char path[PATH_BYTES];
    struct stat status;
    int opened = open_in(path, directory, name, O_WRONLY | O_CREAT | O_APPEND);
    if (opened < 0)
        return errno;
    int failed = fchmod(opened, file_mode) || fstat(opened, &status) ? errno : 0;
    size_t bytes = 0;
    for (int index = 0; index < count; index++)
        bytes += pieces[index].iov_len;
    if (!failed && (!S_ISREG(status.st_mode) || (uint64_t)status.st_size + bytes > most ||
                    !within_limit((uint64_t)status.st_size + bytes)))
        failed = EFBIG;
    failed = failed ? failed : reserve_allows(opened, bytes);
    failed = failed ? failed : write_whole(opened, pieces, count);
    close(opened);
    return failed;
}

void file_copy(const char *directory, const char *name, const char *source, size_t most)
{
    char path[PATH_BYTES], piece[4096];
    int from = open_high(source, O_RDONLY);
    int to = from < 0 ? -1 : open_in(path, directory, name, O_WRONLY | O_CREAT | O_TRUNC);
    ssize_t got = to >= 0 && fchmod(to, file_mode) ? -1 : 0;
    for (size_t copied = 0; to >= 0 && got >= 0 && copied < most && (got = read(from, piece, sizeof piece)) > 0;
         copied += (size_t)got)
        if (!within_limit(copied + (size_t)got) || write(to, piece, (size_t)got) != got)
            break;
    if (to >= 0)
        close(to);
    if (from >= 0)
        close(from);
}

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
    int opened = open_in(path, directory, name, O_RDONLY);
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
    int opened = open_in(path, directory, name, O_RDWR);
    if (opened < 0)
        return errno;
    int failed = !lock_if_soon(opened) ? EWOULDBLOCK : fstat(opened, &status) ? errno : 0;
    off_t from = !failed && status.st_size > (off_t)sizeof tail ? status.st_size - (off_t)sizeof tail : 0;
    ssize_t got = failed ? -1 : pread(opened, tail, sizeof tail, from);
    ssize_t at = got > 0 ? find_last(tail, got, closing_tag) : -1;
    if (at < 0)
        failed = failed ? failed : EBADMSG;
    else if (!within_limit((uint64_t)status.st_size + bytes))
        failed = EFBIG;
    else if (pwrite(opened, text, bytes, from + at) != (ssize_t)bytes)
        failed = errno ? errno : ENOSPC;
    file_unlock(opened);
    return failed;
}
