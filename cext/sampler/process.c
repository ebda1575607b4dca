#define _GNU_SOURCE
#include "sampler/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/system_calls.h"
#include "sampler/memory.h"
#include "sampler/native_code.h"
#include "sampler/thread_list.h"

void process_forget(struct sampled_process *process)
{
    int files[] = {process->handle, process->threads_file, process->memory.file, process->environment};
    threads_forget(process);
    tables_end(&process->tables);
    codes_forget(&process->codes);
    numbers_clear(&process->task_names);
    native_code_forget(&process->native);
    for (unsigned index = 0; index < sizeof files / sizeof *files; index++)
        if (files[index] >= 0)
            close(files[index]);
    free(process->libraries);
    free(process);
}

static bool is_sound(const struct interpreter_layout *layout)
{
    return !layout->runtime ||
           (layout->thread_bytes <= 1024 && layout->frame_bytes <= 256 && layout->code_bytes >= 64 &&
            layout->code_bytes <= CODE_BYTES_AT_MOST && layout->text_ascii <= 64 && layout->bytes_value <= 64);
}

static void open_environment(struct sampled_process *process)
{
    char path[32], byte;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)process->reached);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (pread(file, &byte, 1, 0) == 1)
        process->environment = file;
    else if (file >= 0)
        close(file);
}

static int open_files(struct sampled_process *process, const char *directory)
{
    char path[sizeof process->tables.directory + 16];
    strcpy(path, directory);
    strcat(path, "/threads");
    process->handle = (int)syscall(SYS_pidfd_open, process->pid, 0u);
    if (process->handle < 0)
        return errno;
    process->threads_file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    open_environment(process);
    return process->threads_file < 0 ? errno : 0;
}

/* 0, or why not: memory is what tells of Python code, and the kernel's notes of other code. */
static int may_read(const struct sampled_process *process)
{
    char word[sizeof(uint64_t)];
    if (has_interpreter(process))
        return remote_read(process->reached, process->layout.runtime, word, sizeof word) ? 0 : errno;
    int failed = instructions_try((uint32_t)process->reached);
    return failed == ESRCH ? 0 : failed; /* that thread has ended since, others may go on */
}

static int begin_files(struct sampled_process *process, const char *directory)
{
    char path[sizeof process->tables.directory + 16];
    int failed = tables_begin(&process->tables, directory);
    failed = failed ? failed : open_files(process, directory);
    if (failed)
        return failed;
    strcpy(path, directory);
    strcat(path, "/samples");
    if (access(path, F_OK) == 0)
        return EEXIST;
    return may_read(process);
}

int process_begin(struct sampled_process **begun, pid_t pid, const char *directory, const struct interpreter_layout *layout,
                  const char *libraries)
{
    if (!is_sound(layout))
        return EINVAL;
    struct sampled_process *process = calloc(1, sizeof *process);
    if (!process)
        return ENOMEM;
    process->pid = process->reached = pid;
    process->layout = *layout;
    process->handle = process->threads_file = process->memory.file = process->environment = -1;
    memory_reach(process);
    process->libraries = strdup(libraries);
    int failed = begin_files(process, directory);
    if (failed == EPERM || failed == EACCES)
        tables_refuse(&process->tables, failed);
    if (failed)
        process_forget(process);
    else
        *begun = process;
    return failed;
}
