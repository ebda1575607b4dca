#define _GNU_SOURCE
#include "native/left_out_objects.h"

#include <dlfcn.h>
#include <string.h>

#include "native/native_host.h"

static const char *const parts_of_the_c_library[] = {
    "ld-linux", "ld-musl", "ld64", "libc.", "libc-", "libm.", "libm-", "libdl.", "libdl-", "librt.", "librt-", "libpthread",
    "libresolv", "libnss_", "libnsl", "libutil.", "libutil-", "libanl", "linux-vdso", "linux-gate", "libasan.", "libtsan.",
    "libubsan.", "liblsan.", NULL,
};

bool begins_with_one_of(const char *name, const char *const *beginnings)
{
    for (; *beginnings; beginnings++)
        if (strncmp(name, *beginnings, strlen(*beginnings)) == 0)
            return true;
    return false;
}

/* The path of our package: the name of this function's object, up to the folder above it. */
static struct {
    const char *path;
    size_t bytes;
} own;

void left_out_objects_begin(void)
{
    Dl_info info;
    if (!dladdr((const void *)object_is_left_out, &info) || !info.dli_fname)
        return;
    const char *end = strrchr(info.dli_fname, '/');
    while (end && end > info.dli_fname && *--end != '/')
        ;
    own.path = info.dli_fname;
    own.bytes = end ? (size_t)(end - info.dli_fname) : 0;
}

static bool is_ours(const char *path)
{
    return own.bytes && strncmp(path, own.path, own.bytes) == 0;
}

const char *name_of_object(const struct loaded_object *object)
{
    const char *slash = strrchr(object->path, '/');
    return slash ? slash + 1 : object->path;
}

bool object_is_of_the_c_library(const struct loaded_object *object)
{
    return begins_with_one_of(name_of_object(object), parts_of_the_c_library);
}

bool object_is_apart(const struct loaded_object *object)
{
    return object_is_of_the_c_library(object) || is_ours(object->path);
}

bool object_is_left_out(const struct loaded_object *object)
{
    return !object->symbols || object_is_apart(object) || native_host_leaves_out(object);
}
