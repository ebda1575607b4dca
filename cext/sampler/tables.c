#define _GNU_SOURCE
#include "sampler/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a process's samples and what they name may take; then it is not sampled any longer. */
static const uint64_t SAMPLES_BYTES = 1ull << 30, NAMES_BYTES = 1ull << 28;

/* --- the files */

static void open_path(const struct tables *tables, const struct table *table, int flags, int *opened)
{
    char path[sizeof tables->directory + 32];
    snprintf(path, sizeof path, "%s/%s", tables->directory, table->type->name);
    *opened = open(path, flags | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, tables->mode);
}

/* A file that is there is of a monitor before this one, and stays as it is. */
static int make_file(const struct tables *tables, struct table *table, int error, int *opened)
{
    struct file_head head = {
        .magic = FILE_MAGIC,
        .version = FORMAT_VERSION,
        .head_bytes = table->type->head_bytes,
        .record_bytes = table->type->record_bytes,
        .first = 1,
        .window_bytes = table->type->block_bytes,
        .unrecorded = (uint64_t)error,
    };
    open_path(tables, table, O_CREAT | O_EXCL, opened);
    if (*opened < 0)
        return errno;
    return fchmod(*opened, tables->mode) || write(*opened, &head, sizeof head) != (ssize_t)sizeof head ? EIO : 0;
}

/* A part of it is no use to anybody. */
static int write_pending(struct table *table, int opened)
{
    off_t at = (off_t)(table->end - table->used);
    ssize_t written = pwrite(opened, table->pending, table->used, at);
    if (written == (ssize_t)table->used)
        return 0;
    int failed = written < 0 ? errno : ENOSPC;
    return ftruncate(opened, at) ? errno : failed;
}

static bool is_new(const struct table *table)
{
    return table->end == table->used + table->type->head_bytes;
}

static void flush(struct tables *tables, struct table *table)
{
    int opened = -1;
    if (tables->failed || !table->used)
        return;
    if (is_new(table))
        tables->failed = make_file(tables, table, 0, &opened);
    else
        open_path(tables, table, 0, &opened);
    if (!tables->failed)
        tables->failed = opened < 0 ? errno : write_pending(table, opened);
    if (opened >= 0)
        close(opened);
    table->used = 0;
}

void tables_refuse(struct tables *tables, int error)
{
    int opened = -1;
    tables->failed = make_file(tables, &tables->samples, error, &opened);
    if (opened >= 0)
        close(opened);
}

/* A name is written before the records that refer to it. */
void tables_flush(struct tables *tables)
{
    flush(tables, &tables->strings);
    flush(tables, &tables->sites);
    flush(tables, &tables->stacks);
    flush(tables, &tables->samples);
    flush(tables, &tables->memory);
    flush(tables, &tables->counts);
}

/* --- records */

static void *room(struct tables *tables, struct table *table, size_t bytes)
{
    bool is_of_samples = table == &tables->samples || table == &tables->counts;
    if (table->end + bytes > (is_of_samples ? SAMPLES_BYTES : NAMES_BYTES))
        tables->failed = tables->failed ? tables->failed : EFBIG;
    if (table->used + bytes > PENDING_BYTES)
        tables_flush(tables);
    if (tables->failed)
        return NULL;
    void *found = table->pending + table->used;
    table->used += bytes;
    table->end += bytes;
    return found;
}

static uint32_t add(struct tables *tables, struct table *table, const void *record)
{
    void *place = room(tables, table, table->type->record_bytes);
    if (place)
        memcpy(place, record, table->type->record_bytes);
    return place ? table->next++ : 0;
}

/* A string is within one window; tell readers that the rest of a window is empty. */
static bool leave_window(struct tables *tables, size_t bytes)
{
    struct table *strings = &tables->strings;
    size_t left = WINDOW_BYTES - strings->end % WINDOW_BYTES;
    if (bytes <= left)
        return true;
    char *rest = room(tables, strings, left);
    if (!rest)
        return false;
    memset(rest, 0, left);
    memset(rest, 0xff, left < sizeof(uint32_t) ? left : sizeof(uint32_t));
    return true;
}

uint32_t tables_string(struct tables *tables, const char *text, size_t bytes)
{
    uint64_t key = key_of_text(text, bytes);
    uint32_t number = numbers_find(&tables->string_numbers, key), length = (uint32_t)bytes;
    size_t padded = sizeof length + (bytes + 3) / 4 * 4;
    if (number || bytes > STRING_BYTES || !bytes || !leave_window(tables, padded))
        return number;
    char *place = room(tables, &tables->strings, padded);
    if (!place)
        return 0;
    memset(place + padded - sizeof(uint32_t), 0, sizeof(uint32_t));
    memcpy(place, &length, sizeof length);
    memcpy(place + sizeof length, text, bytes);
    numbers_keep(&tables->string_numbers, key, tables->strings.next);
    return tables->strings.next++;
}

uint32_t tables_site(struct tables *tables, const struct site *site)
{
    uint64_t key = key_of_text((const char *)site, sizeof *site);
    uint32_t number = numbers_find(&tables->site_numbers, key);
    if (!number && (number = add(tables, &tables->sites, site)))
        numbers_keep(&tables->site_numbers, key, number);
    return number;
}

uint32_t tables_stack(struct tables *tables, uint32_t site, uint32_t outer, bool cut)
{
    struct stack stack = {.site = site, .outer = outer, .cut = cut};
    uint64_t key = key_of_text((const char *)&stack, sizeof stack);
    uint32_t number = site ? numbers_find(&tables->stack_numbers, key) : 0;
    if (site && !number && (number = add(tables, &tables->stacks, &stack)))
        numbers_keep(&tables->stack_numbers, key, number);
    return number;
}

uint32_t tables_sample(struct tables *tables, const struct sample *sample)
{
    return add(tables, &tables->samples, sample);
}

void tables_count(struct tables *tables, const struct sampled_count *count)
{
    add(tables, &tables->counts, count);
}

void tables_memory(struct tables *tables, const struct memory *memory)
{
    add(tables, &tables->memory, memory);
}

/* --- begin and end */

static void begin_table(struct table *table, enum data_number number)
{
    table->type = &data_types[number];
    table->end = table->type->head_bytes;
    table->next = 1;
}

int tables_begin(struct tables *tables, const char *directory)
{
    struct stat status;
    memset(tables, 0, sizeof *tables);
    if (strlen(directory) >= sizeof tables->directory)
        return ENAMETOOLONG;
    if (stat(directory, &status))
        return errno;
    strcpy(tables->directory, directory);
    tables->mode = status.st_mode & S_IRGRP ? 0640 : 0600;
    begin_table(&tables->samples, DATA_SAMPLES);
    begin_table(&tables->sites, DATA_SAMPLED_SITES);
    begin_table(&tables->stacks, DATA_SAMPLED_STACKS);
    begin_table(&tables->strings, DATA_SAMPLED_STRINGS);
    begin_table(&tables->memory, DATA_SAMPLED_MEMORY);
    begin_table(&tables->counts, DATA_SAMPLED_COUNTS);
    return 0;
}

void tables_end(struct tables *tables)
{
    tables_flush(tables);
    numbers_clear(&tables->string_numbers);
    numbers_clear(&tables->site_numbers);
    numbers_clear(&tables->stack_numbers);
}
