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
#include "native/native_stacks.h"

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
static uint32_t stack_in_python(struct thread *thread)
{
    uint32_t depth = thread->record->fields.depth;
    PyThreadState *own = RUNNING_STATE_IS_OWN ? recorded_state() : NULL;
    bool has_lock = own;
    if (!own) {
        own = own_state();
        has_lock = own && own == running_state();
    }
    if (!has_lock && depth && depth <= OPEN_CALLS && !is_told_by_program(thread->record->open[depth - 1].intrinsic))
        return thread->record->open[depth - 1].stack;
    frame *frame = own ? frame_innermost(own) : NULL;
    return frame ? stack_again(frame, has_lock, &thread->native_place) : 0;
}

uint32_t native_host_stack(struct thread *thread, struct native_origin from)
{
    return native_stack_of(thread, from, stack_in_python(thread));
}

/* The call of Python around it does. */
void native_host_is_due(struct thread *thread)
{
    (void)thread;
}

bool native_host_is_interpreter(const struct loaded_object *object)
{
    return is_in(object->all, (uintptr_t)PyEval_RestoreThread);
}

bool native_host_is_own(const struct loaded_object *object)
{
    (void)object;
    return false;
}

/* The interpreter, and those of its extension modules that only cover system calls. */
bool native_host_leaves_out(const struct loaded_object *object)
{
    const char *name = name_of_object(object);
    if (!*name || native_host_is_interpreter(object))
        return true;
    return strstr(object->path, "/lib-dynload/") && begins_with_one_of(name, covers_of_system_calls);
}

bool native_host_covers_tls(const struct loaded_object *object)
{
    static const char *const ssl[] = {"_ssl.", NULL};
    return begins_with_one_of(name_of_object(object), ssl);
}

/* Imports, and `ctypes`, are seen by themselves. */
void native_host_looked_up(void)
{
}
