#define _GNU_SOURCE
#include "native/tls_library.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "core/interning.h"
#include "hooks/descriptors.h"
#include "native/native_errors.h"

/* Of objects that have functions of these names, one without the last is another library's imitation. */
static struct {
    struct region all;
    int (*number)(const void *connection);
    int (*error)(const void *connection, int result);
} openssl;

static struct {
    struct region all;
    void *(*transport)(void *connection);
    const char *(*name)(int error);
} gnutls;

static void look_at_openssl(const struct loaded_object *object)
{
    void *number = object_function(object, "SSL_get_fd"), *error = object_function(object, "SSL_get_error");
    if (!number || !error || !object_function(object, "OPENSSL_init_ssl"))
        return;
    openssl.all = object->all;
    openssl.number = (int (*)(const void *))number;
    openssl.error = (int (*)(const void *, int))error;
}

static void look_at_gnutls(const struct loaded_object *object)
{
    void *transport = object_function(object, "gnutls_transport_get_ptr"), *name = object_function(object, "gnutls_strerror_name");
    if (!transport || !name)
        return;
    gnutls.all = object->all;
    gnutls.transport = (void *(*)(void *))transport;
    gnutls.name = (const char *(*)(int))name;
}

bool tls_is_of(const struct loaded_object *object, bool is_openssl)
{
    struct region *all = is_openssl ? &openssl.all : &gnutls.all;
    if (!all->end)
        (is_openssl ? look_at_openssl : look_at_gnutls)(object);
    return all->end && all->begin == object->all.begin;
}

void tls_forget(bool is_openssl)
{
    *(is_openssl ? &openssl.all : &gnutls.all) = (struct region){0, 0};
}

int number_of_openssl(const void *connection)
{
    int saved = errno, number = connection ? openssl.number(connection) : -1;
    errno = saved;
    return number;
}

/* What stands for a connection may be its descriptor, or the address of something. */
int number_of_gnutls(void *connection)
{
    uintptr_t transport = connection ? (uintptr_t)gnutls.transport(connection) : UINTPTR_MAX;
    return transport < DESCRIPTORS_KNOWN ? (int)transport : -1;
}

static uint32_t named(const char *name)
{
    return name ? string_intern(name, strlen(name)) : 0;
}

uint32_t failed_openssl(const void *connection, int result)
{
    enum { SSL_ERROR_SSL = 1, SSL_ERROR_SYSCALL = 5 };
    int saved = errno, error = result <= 0 && connection ? openssl.error(connection, result) : 0;
    uint32_t failed = 0;
    if (error == SSL_ERROR_SSL)
        failed = named("SSL_ERROR_SSL");
    else if (error == SSL_ERROR_SYSCALL)
        failed = saved ? native_error(false, saved) : named("SSL_ERROR_SYSCALL");
    errno = saved;
    return failed;
}

uint32_t failed_gnutls(int64_t result)
{
    enum { GNUTLS_E_AGAIN = -28, GNUTLS_E_INTERRUPTED = -52 };
    int saved = errno;
    bool is_error = result < 0 && result != GNUTLS_E_AGAIN && result != GNUTLS_E_INTERRUPTED;
    uint32_t failed = is_error ? named(gnutls.name((int)result)) : 0;
    errno = saved;
    return failed;
}
