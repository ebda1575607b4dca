#define _GNU_SOURCE
#include "core/series.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "core/recorder.h"

static const char unfinished[] = ".new";

/* The file gets its name once it has its head: others find no file, or one that can be read. */
static int give_name(struct grown_file *file)
{
    char path[PATH_BYTES];
    size_t length = strlen(file->path) - strlen(unfinished);
    snprintf(path, sizeof path, "%.*s", (int)length, file->path);
    int failed = file_rename(file->path, path);
    if (!failed)
        file->path[length] = 0;
    return failed;
}

int series_create(struct series *series, const char *directory, const struct data_type *type, uint32_t first)
{
    char anew[64];
    bool is_read = recorder_directory() != NULL; /* others read a process's files once it has a log */
    memset(series, 0, offsetof(struct series, file)); /* the path's memory is left untouched: a forked child has no copy */
    series->window_bytes = type->block_bytes;
    snprintf(anew, sizeof anew, "%s%s", type->name, is_read ? unfinished : "");
    series->window = file_create_mapped(&series->file, directory, anew, series->window_bytes, SPACE_BYTES);
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
    return is_read ? give_name(&series->file) : 0;
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
