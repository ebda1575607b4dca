#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "native/native_host.h"

#include <string.h>

#include "core/levels.h"
#include "cpython/sites.h"
#include "cpython/waiting_sites.h"
#include "hooks/without_lock.h"
#include "native/left_out_objects.h"

static const char *const covers_of_system_calls[] = {
    "_socket.", "select.", "_posixsubprocess.", "_multiprocessing.", "_posixshmem.", "mmap.", "fcntl.", "_io.", "posix.",
    "time.", "resource.", "termios.", "_queue.", NULL,
};

struct native_exchange native_host_exchanges[1]; /* of which none is used */
unsigned native_host_exchange_count;

void native_host_begin(void)
{
    waiting_sites_begin();
}

struct thread *native_host_thread(void)
{
    return known_thread();
}

/* The line of Python. A call that C code makes without the lock comes from the line of the call around it. */
static uint32_t stack_in_python(const struct thread *thread)
{
    uint32_t depth = thread->record->fields.depth;
    PyThreadState *running = running_state();
    frame *frame = NULL;
    if (running && running == PyGILState_GetThisThreadState())
        return (frame = own_innermost_frame()) ? stack_of_waiting(frame, false) : 0;
    if (depth && depth <= OPEN_CALLS && !is_told_by_program(thread->record->open[depth - 1].intrinsic))
        return thread->record->open[depth - 1].stack;
    return (frame = own_innermost_frame()) ? stack_without_lock(frame) : 0;
}

uint32_t native_host_stack(const struct thread *thread, uint32_t site, const void *caller)
{
    uint32_t python = stack_in_python(thread);
    (void)caller;
    return site ? stack_intern(site, python, 0) : python;
}

/* The interpreter, and those of its extension modules that only cover system calls. */
bool native_host_leaves_out(const struct loaded_object *object)
{
    const char *name = name_of_object(object);
    if (!*name || is_in(object->all, (uintptr_t)PyEval_RestoreThread))
        return true;
    return strstr(object->path, "/lib-dynload/") && begins_with_one_of(name, covers_of_system_calls);
}

/* Imports, and `ctypes`, are seen by themselves. */
void native_host_looked_up(void)
{
}
