#define _GNU_SOURCE
#include "native/native_errors.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "core/interning.h"

#define ERRORS(X) \
    X(E2BIG) X(EACCES) X(EBADF) X(EBUSY) X(ECHILD) X(ECONNABORTED) X(ECONNREFUSED) X(ECONNRESET) X(EDEADLK) X(EDQUOT) X(EEXIST) X(EFAULT) X(EFBIG) \
    X(EHOSTUNREACH) X(EIDRM) X(EINVAL) X(EIO) X(EISCONN) X(EISDIR) X(ELOOP) X(EMFILE) X(EMSGSIZE) X(ENAMETOOLONG) X(ENETUNREACH) \
    X(ENFILE) X(ENOBUFS) X(ENODEV) X(ENOENT) X(ENOLCK) X(ENOMEM) X(ENOMSG) X(ENOSPC) X(ENOTCONN) X(ENOTDIR) X(ENOTSOCK) X(ENXIO) \
    X(EOPNOTSUPP) X(EPERM) X(EPIPE) X(EROFS) X(ESPIPE) X(ETIMEDOUT) X(ETXTBSY)
#define LOOK_UP_ERRORS(X) \
    X(EAI_AGAIN) X(EAI_BADFLAGS) X(EAI_FAIL) X(EAI_FAMILY) X(EAI_MEMORY) X(EAI_NONAME) X(EAI_SERVICE) X(EAI_SOCKTYPE) \
    X(EAI_SYSTEM)

#define NAME_OF_ERROR(number) case number: return #number;

static const char *name_of_error(int error)
{
    switch (error) {
    ERRORS(NAME_OF_ERROR)
    default: return NULL;
    }
}

static const char *name_of_look_up_error(int error)
{
    switch (error) {
    LOOK_UP_ERRORS(NAME_OF_ERROR)
    default: return NULL;
    }
}

uint32_t native_error(bool of_look_up, int error)
{
    char text[32];
    if (!of_look_up && (error == EAGAIN || error == EINTR || error == EINPROGRESS))
        return 0;
    const char *name = of_look_up ? name_of_look_up_error(error) : name_of_error(error);
    if (name)
        return string_intern(name, strlen(name));
    return string_intern(text, (size_t)snprintf(text, sizeof text, "error %d", error));
}

uint32_t failed_thread(int result)
{
    static const char *const names[] = {
        [THREAD_BUSY] = "thrd_busy", [THREAD_ERROR] = "thrd_error", [THREAD_NO_MEMORY] = "thrd_nomem"};
    bool is_error = result > 0 && result <= THREAD_NO_MEMORY;
    int saved = errno;
    uint32_t failed = is_error ? string_intern(names[result], strlen(names[result])) : 0;
    errno = saved;
    return failed;
}
