#define _GNU_SOURCE
#include "hooks/file_lock_detail.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/detail_levels.h"
#include "hooks/object_descriptor.h"
#include "hooks/path_detail.h"

static const char *operation_of(bool waits, bool is_shared)
{
    if (waits)
        return is_shared ? "shared lock" : "lock";
    return is_shared ? "try shared lock" : "try lock";
}

/* Of fcntl.flock, and of fcntl.lockf, which has the same numbers. */
static const char *operation_of_flock(int how)
{
    return how & LOCK_UN ? "unlock" : operation_of(!(how & LOCK_NB), how & LOCK_SH);
}

static const char *operation_of_lockf(int command)
{
    if (command == F_ULOCK)
        return "unlock";
    return command == F_TEST ? "test" : operation_of(command == F_LOCK, false);
}

/* The bytes that are passed; without them, a lock of all. */
static struct flock range_of(PyObject *passed)
{
    struct flock range = {.l_type = F_WRLCK};
    if (passed && PyBytes_Check(passed) && PyBytes_GET_SIZE(passed) >= (Py_ssize_t)sizeof range)
        memcpy(&range, PyBytes_AS_STRING(passed), sizeof range);
    return range;
}

static bool is_other_than_0(PyObject *number)
{
    return number && PyLong_Check(number) && descriptor_of_number(number) != 0;
}

/* lockf has the length and the beginning, if they are given. */
static bool is_of_a_part(const struct call *call)
{
    if (call->slot->detail == DETAIL_lockf)
        return is_other_than_0(argument_of(call, 2));
    if (call->slot->detail == DETAIL_flock)
        return is_other_than_0(argument_of(call, 2)) || is_other_than_0(argument_of(call, 3));
    struct flock range = range_of(argument_of(call, 2));
    return range.l_len || range.l_start;
}

/* NULL where what is passed is no bytes, such as a structure of ctypes: it is not read. */
static const char *operation_of_fcntl(int command, PyObject *passed)
{
    if (passed && !PyBytes_Check(passed))
        return NULL;
    if (command == F_GETLK || command == F_OFD_GETLK)
        return "test";
    short type = range_of(passed).l_type;
    return type == F_UNLCK ? "unlock" : operation_of(command == F_SETLKW || command == F_OFD_SETLKW, type == F_RDLCK);
}

/* -1 if it is no whole number. */
static int operation_argument(const struct call *call)
{
    PyObject *number = argument_of(call, 1);
    return number && PyLong_Check(number) ? descriptor_of_number(number) : -1;
}

bool is_lock_command(const struct call *call)
{
    int command = operation_argument(call);
    bool is_of_process = command == F_SETLKW || command == F_SETLK || command == F_GETLK;
    return is_of_process || command == F_OFD_SETLKW || command == F_OFD_SETLK || command == F_OFD_GETLK;
}

/* NULL if it is none of a lock. */
static const char *operation(const struct call *call)
{
    int number = operation_argument(call);
    if (number < 0)
        return NULL;
    if (call->slot->detail == DETAIL_flock)
        return operation_of_flock(number);
    if (call->slot->detail == DETAIL_lockf)
        return operation_of_lockf(number);
    return is_lock_command(call) ? operation_of_fcntl(number, argument_of(call, 2)) : NULL;
}

/* False if there is not room for the path, or it has none. */
static __attribute__((noinline)) bool intern_in(size_t room, const char *what, const char *of, int descriptor, uint32_t *detail)
{
    char text[room];
    size_t begin = (size_t)snprintf(text, room, "%s %s", what, of);
    size_t bytes = descriptor_path(descriptor, text + begin, room - begin);
    if (bytes)
        *detail = path_intern(KIND_file, text, begin + bytes);
    return bytes;
}

uint32_t file_lock_detail(const struct call *call, int descriptor)
{
    enum { ORDINARY_BYTES = 256, LONGEST_BYTES = 4096 + 32 }; /* the stack may be small, and few paths are long */
    const char *what = operation(call), *of = is_of_a_part(call) ? "part of " : "";
    uint32_t detail;
    if (what && (intern_in(ORDINARY_BYTES, what, of, descriptor, &detail) ||
                 intern_in(LONGEST_BYTES, what, of, descriptor, &detail)))
        return detail;
    return detail_of_descriptor(descriptor);
}
