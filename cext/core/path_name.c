#include "core/path_name.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool has_dots(const char *path)
{
    while ((path = strstr(path, "/."))) {
        path += path[2] == '.' ? 3 : 2;
        if (!*path || *path == '/')
            return true;
    }
    return false;
}

static bool is_plain_already(const char *path)
{
    return path[0] != '/' || !(has_dots(path) || strstr(path, "//"));
}

static bool is_directory(const char *path, const char *root)
{
    char whole[PATH_MAX + 64];
    struct stat status;
    int bytes = snprintf(whole, sizeof whole, "%s%s", root, path);
    return bytes < (int)sizeof whole && lstat(whole, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Where the last part of `path`, which ends at `end`, begins with its slash. */
static char *last_part(char *path, char *end)
{
    *end = 0;
    char *slash = strrchr(path, '/');
    return slash ? slash : path;
}

/* Leave the last directory of what is there already; false if that may not be done by its name. */
static bool leave(char *path, char **end, const char *root)
{
    char *last = last_part(path, *end);
    if (*end != path && (strcmp(last, "/..") == 0 || !is_directory(path, root)))
        return false;
    *end = last;
    return true;
}

static void shorten(char *path, const char *root)
{
    char given[PATH_MAX], *end = path, *rest = given;
    strcpy(given, path);
    for (char *part; (part = strsep(&rest, "/"));) {
        bool is_out = strcmp(part, "..") == 0;
        if (!*part || strcmp(part, ".") == 0 || (is_out && leave(path, &end, root)))
            continue;
        *end++ = '/';
        end = stpcpy(end, part);
    }
    if (end == path)
        *end++ = '/';
    *end = 0;
}

void path_name(char *path, const char *root)
{
    int saved = errno;
    if (!is_plain_already(path) && strlen(path) < PATH_MAX)
        shorten(path, root);
    errno = saved;
}
