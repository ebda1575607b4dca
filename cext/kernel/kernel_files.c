#define _GNU_SOURCE
#include "kernel/kernel_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/open_file.h"

static int make_file(const char *directory, enum data_number type)
{
    char path[PATH_BYTES];
    struct stat status;
    if (stat(directory, &status) || snprintf(path, sizeof path, "%s/%s", directory, data_types[type].name) >= PATH_BYTES)
        return -1;
    mode_t mode = status.st_mode & S_IRGRP ? 0640 : 0600;
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (file >= 0)
        fchmod(file, mode);
    return file;
}

/* The first failure ends it: the disk is full, say. */
static void write_at(struct kernel_files *files, int file, const void *data, size_t bytes, uint64_t at)
{
    if (files->failed || file < 0)
        return;
    ssize_t written = pwrite(file, data, bytes, (off_t)at);
    if (written != (ssize_t)bytes)
        files->failed = written < 0 ? errno : ENOSPC;
}

static void write_head_of_threads(struct kernel_files *files)
{
    char head[THREAD_BYTES] = {0};
    const struct data_type *type = &data_types[DATA_THREADS];
    struct file_head is = {
        .magic = FILE_MAGIC,
        .version = FORMAT_VERSION,
        .head_bytes = type->head_bytes,
        .record_bytes = type->record_bytes,
        .first = 1,
        .window_bytes = type->block_bytes,
    };
    memcpy(head, &is, sizeof is);
    write_at(files, files->threads, head, sizeof head, 0);
}

int kernel_files_begin(struct kernel_files *files, const char *directory)
{
    *files = (struct kernel_files){.events = make_file(directory, DATA_EVENTS), .threads = -1};
    if (files->events >= 0)
        files->threads = make_file(directory, DATA_THREADS);
    files->failed = files->threads < 0 ? errno : 0;
    if (!files->failed)
        write_head_of_threads(files);
    return files->failed;
}

void kernel_files_end(struct kernel_files *files)
{
    while (files->left) {
        struct held_block *block = files->left;
        files->left = block->next;
        kernel_block_write(files, block);
        free(block);
    }
    if (files->events >= 0)
        close(files->events);
    if (files->threads >= 0)
        close(files->threads);
    files->events = files->threads = -1;
}

/* It gets a place behind all others, and the number after theirs. */
static void begin_block(struct kernel_files *files, struct held_block *block, uint32_t thread)
{
    block->at = files->end;
    files->end += BLOCK_BYTES;
    block->is.head = (struct block_head){
        .magic = BLOCK_MAGIC,
        .state = BLOCK_WRITING,
        .thread = thread,
        .sequence = ++files->sequence,
        .first_ns = UINT64_MAX,
    };
}

struct held_block *kernel_block_take(struct kernel_files *files, uint32_t thread)
{
    struct held_block *block = files->left;
    if (block) {
        files->left = block->next;
        block->is.head.state = BLOCK_WRITING;
        block->is.head.thread = thread;
    } else if ((block = calloc(1, sizeof *block))) {
        begin_block(files, block, thread);
    }
    return block;
}

void kernel_block_write(struct kernel_files *files, struct held_block *block)
{
    struct block_head *head = &block->is.head;
    bool is_full = head->used == BLOCK_EVENTS;
    if (is_full)
        head->state = BLOCK_FULL;
    if (block->has_changed)
        write_at(files, files->events, &block->is, BLOCK_BYTES, block->at);
    block->has_changed = false;
    if (is_full)
        begin_block(files, block, head->thread);
}

void kernel_block_leave(struct kernel_files *files, struct held_block *block)
{
    block->is.head.state = BLOCK_LEFT;
    block->has_changed = true;
    block->next = files->left;
    files->left = block;
}

void kernel_thread_write(struct kernel_files *files, uint32_t number, const struct thread_record *record)
{
    char padded[THREAD_BYTES] = {0};
    memcpy(padded, record, sizeof *record);
    write_at(files, files->threads, padded, sizeof padded, (uint64_t)number * THREAD_BYTES);
}
