#define _GNU_SOURCE
#include "core/preload.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/own_file.h"

enum { LINE_BYTES = 512 };

static bool programs_followed;
static const char library_name[] = "libinterpose_boot.so";
static const char startup_name[] = "interpose.pth";

void preload_choose_programs(bool followed)
{
    programs_followed = followed;
}

bool preload_follows(enum reason reason)
{
    return reason == REASON_none || (programs_followed && reason == REASON_NOT_PYTHON);
}

/* --- our own library */

const char *preload_library(void)
{
    static char path[PATH_BYTES];
    if (!*path && !own_file(path, library_name))
        return NULL;
    return *path == '/' && !strpbrk(path, " :$\t\n") && access(path, R_OK) == 0 ? path : NULL;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* --- whether it reads our start-up file */

static void cut(char *path, int levels)
{
    while (levels--) {
        char *slash = strrchr(path, '/');
        if (slash)
            *slash = 0;
    }
}

static bool is_there(const char *directory, const char *rest)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", directory, rest);
    return access(path, R_OK) == 0;
}

/* In the site-packages below a prefix, of the version that the interpreter's own name tells. */
static bool has_startup_below(const char *prefix, const char *version)
{
    char path[128];
    snprintf(path, sizeof path, "lib/python3.%.8s/site-packages/%s", version, startup_name);
    return is_there(prefix, path);
}

/* If unknown, the answer is no: a process that boots twice is booted once. */
static bool has_startup(const char *path)
{
    char prefix[PATH_MAX], real[PATH_MAX];
    if (!realpath(path, real) || strlen(path) >= sizeof prefix)
        return false;
    const char *version = strstr(base_name(real), "python3.");
    if (!version)
        return false;
    version += strlen("python3.");
    strcpy(prefix, path);
    cut(prefix, 2);
    if (is_there(prefix, "pyvenv.cfg"))
        return has_startup_below(prefix, version);
    char own[16];
    snprintf(own, sizeof own, "%.8s", version);
    cut(real, 2);
    return has_startup_below(real, own);
}

/* --- how it is started */

static bool takes_word(const char *option)
{
    return strcmp(option, "--check-hash-based-pycs") == 0;
}

/* Does one of the interpreter's options say that start-up files are not to be read? */
static bool is_without_site(const char *const *words)
{
    for (; *words && **words == '-' && (*words)[1]; words++) {
        if ((*words)[1] == '-') {
            if (!takes_word(*words))
                continue;
            if (!*++words)
                return false;
            continue;
        }
        for (const char *letter = *words + 1; *letter; letter++) {
            if (*letter == 'S')
                return true;
            if (*letter == 'c' || *letter == 'm')
                return false;
            if (*letter == 'X' || *letter == 'W') {
                if (!letter[1] && !*++words)
                    return false;
                break;
            }
        }
    }
    return false;
}

/* An interpreter finds its files by the name that it is called by; another one than its path may lead out of its
   virtual environment. A name without a slash is searched in the child's PATH, as the interpreter does. */
static bool finds_startup(const char *interpreter, const char *name, bool has_our_path)
{
    char found[PATH_BYTES];
    if (!name || strcmp(name, interpreter) == 0)
        return has_startup(interpreter);
    bool is_known = *name == '/' || (has_our_path && !strchr(name, '/'));
    return is_known && program_find(name, found) && *found == '/' && has_startup(found);
}

static bool is_needed(const char *interpreter, const char *name, const char *const *words, bool has_our_path)
{
    return program_is_python(interpreter) && (is_without_site(words) || !finds_startup(interpreter, name, has_our_path)) &&
           program_reason(interpreter) == REASON_none;
}

/* The interpreter of a script, and the one word that may follow it. */
static bool split_first_line(char *line, const char **interpreter, const char **word)
{
    char *end = strchr(line, '\n');
    if (strncmp(line, "#!", 2) != 0 || !end)
        return false;
    *end = 0;
    char *start = line + 2 + strspn(line + 2, " \t");
    char *after = start + strcspn(start, " \t");
    *interpreter = start;
    if (*after) {
        *after++ = 0;
        after += strspn(after, " \t");
        after[strcspn(after, " \t")] = 0;
    }
    *word = *after ? after : NULL;
    return *start == '/';
}

static bool read_first_line(const char *path, char line[LINE_BYTES])
{
    struct stat status;
    int number = stat(path, &status) == 0 && S_ISREG(status.st_mode) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t bytes = number < 0 ? -1 : read(number, line, LINE_BYTES - 1);
    if (number >= 0)
        close(number);
    line[bytes < 0 ? 0 : bytes] = 0;
    return bytes > 0;
}

bool preload_is_needed(const char *path, const char *const *words, bool has_our_path)
{
    char line[LINE_BYTES];
    const char *interpreter, *option[2] = {NULL, NULL};
    if (!preload_library())
        return false;
    if (program_is_python(path))
        return is_needed(path, *words, *words ? words + 1 : words, has_our_path);
    if (programs_followed && program_reason(path) == REASON_NOT_PYTHON)
        return true;
    return read_first_line(path, line) && split_first_line(line, &interpreter, &option[0]) &&
           is_needed(interpreter, interpreter, option, has_our_path);
}
