#define _GNU_SOURCE
#include "core/own_file.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool own_file(char path[PATH_BYTES], const char *name)
{
    char library[PATH_MAX];
    Dl_info own;
    if (!dladdr((void *)own_file, &own) || !own.dli_fname || !realpath(own.dli_fname, library))
        return false;
    int directory = (int)(strrchr(library, '/') - library);
    return snprintf(path, PATH_BYTES, "%.*s/%s", directory, library, name) < PATH_BYTES;
}
