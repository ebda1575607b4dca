#define _GNU_SOURCE
#include "sampler/memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Smaller changes are not recorded, nor smaller parts of the whole. */
static const uint64_t LEAST_BYTES = 1u << 20, LEAST_PART = 64;

void memory_ran(struct sampled_process *process, uint64_t cpu_ns, uint32_t thread, uint32_t stack)
{
    struct sampled_memory *memory = &process->memory;
    if (cpu_ns <= memory->most_cpu_ns)
        return;
    memory->most_cpu_ns = cpu_ns;
    memory->pending.thread = thread;
    memory->pending.stack = stack;
}

/* 0 if nothing is known: the thread has ended. */
static uint64_t resident_bytes(int file)
{
    char text[64];
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    if (length <= 0)
        return 0;
    text[length] = 0;
    const char *second = strchr(text, ' ');
    return second ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static bool reach_through(struct sampled_process *process, pid_t thread)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/statm", (int)thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool has_memory = resident_bytes(file) > 0;
    int other = has_memory ? process->memory.file : file;
    if (other >= 0)
        close(other);
    if (has_memory) {
        process->memory.file = file;
        process->reached = thread;
    }
    return has_memory;
}

bool memory_reach(struct sampled_process *process)
{
    char path[32];
    struct dirent *each;
    bool is_reached = false;
    snprintf(path, sizeof path, "/proc/%d/task", (int)process->pid);
    DIR *tasks = opendir(path);
    while (tasks && !is_reached && (each = readdir(tasks))) {
        pid_t thread = (pid_t)strtol(each->d_name, NULL, 10);
        is_reached = thread && reach_through(process, thread);
    }
    if (tasks)
        closedir(tasks);
    return is_reached;
}

static bool has_changed(uint64_t before, uint64_t now)
{
    uint64_t by = now > before ? now - before : before - now;
    return !before || (by >= LEAST_BYTES && by >= before / LEAST_PART);
}

void memory_look(struct sampled_process *process)
{
    struct sampled_memory *memory = &process->memory;
    struct timespec now;
    uint64_t bytes = resident_bytes(memory->file);
    if (!bytes && memory_reach(process))
        bytes = resident_bytes(memory->file);
    if (bytes && has_changed(memory->pending.resident_bytes, bytes)) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        memory->pending.time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        memory->pending.resident_bytes = bytes;
        tables_memory(&process->tables, &memory->pending);
    }
    memory->most_cpu_ns = 0;
    memory->pending.thread = memory->pending.stack = 0;
}
