#define _GNU_SOURCE
#include "sampler/memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Smaller changes are not recorded, nor smaller parts of the whole. */
static const uint64_t LEAST_BYTES = 1u << 20, LEAST_PART = 64;

int memory_open(pid_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC);
}

void memory_ran(struct sampled_process *process, uint64_t cpu_ns, uint32_t thread, uint32_t stack)
{
    struct sampled_memory *memory = &process->memory;
    if (cpu_ns <= memory->most_cpu_ns)
        return;
    memory->most_cpu_ns = cpu_ns;
    memory->pending.thread = thread;
    memory->pending.stack = stack;
}

/* 0 if nothing is known: the process has ended. */
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

static bool has_changed(uint64_t before, uint64_t now)
{
    uint64_t by = now > before ? now - before : before - now;
    return !before || (by >= LEAST_BYTES && by >= before / LEAST_PART);
}

void memory_look(struct sampled_process *process)
{
    struct sampled_memory *memory = &process->memory;
    struct timespec now;
    uint64_t bytes = memory->file < 0 ? 0 : resident_bytes(memory->file);
    if (bytes && has_changed(memory->pending.resident_bytes, bytes)) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        memory->pending.time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
        memory->pending.resident_bytes = bytes;
        tables_memory(&process->tables, &memory->pending);
    }
    memory->most_cpu_ns = 0;
    memory->pending.thread = memory->pending.stack = 0;
}
