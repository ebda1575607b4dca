#define _GNU_SOURCE
#include "program/program_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/child_variables.h"
#include "core/document.h"
#include "core/follow.h"

enum { MOST_DESCENDANTS = 1000 * 1000, EXCLUDED_BYTES = 16 * 1024 * 1024 };

static bool is_own_directory(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == getuid() && !(status.st_mode & 022);
}

/* Steps like `_f1_x2`, after `M` for a rank of MPI. */
static bool is_lineage(const char *text)
{
    text += *text == 'M';
    for (size_t digits; *text == '_' && text[1] && strchr("fxcr", text[1]); text += 2 + digits)
        if (!(digits = strspn(text + 2, "0123456789")))
            return false;
    return *text == 0;
}

/* `PID FOUNDER LINEAGE`; a founder has an empty lineage. */
bool place_find(struct place *place, char step[260])
{
    const char *told = getenv(VARIABLE_LINEAGE), *founder = told ? strchr(told, ' ') : NULL;
    const char *lineage = founder ? strrchr(founder + 1, ' ') : NULL;
    if (!lineage || founder[1] != '/' || !is_lineage(lineage + 1) || strlen(lineage) > 240)
        return false;
    int bytes = snprintf(place->founder, sizeof place->founder, "%.*s", (int)(lineage - founder - 1), founder + 1);
    snprintf(step, 260, "%s%s", lineage + 1, strtol(told, NULL, 10) == (long)getpid() ? "_x" : "_c");
    return bytes < (int)sizeof place->founder && is_own_directory(place->founder);
}

/* A file has the name, so that the next lineage has the next number. */
static int exclude(const struct place *place)
{
    char line[32];
    const struct iovec piece = {line, (size_t)snprintf(line, sizeof line, "%d\n", (int)getpid())};
    int opened = file_open(place->directory, O_WRONLY | O_CREAT | O_EXCL);
    if (opened < 0)
        return errno;
    close(opened);
    file_add(place->founder, "excluded", &piece, 1, EXCLUDED_BYTES);
    return 0;
}

/* Of all the processes that `interpose run` started, the first to come here makes the log. */
bool place_claim(struct place *place, const char *step)
{
    char path[PATH_BYTES];
    bool is_first = strlen(step) == strlen("_c") && (follow_is_off() || follow_matches(""));
    int made = is_first ? file_open_in(path, place->founder, "log.xml", O_WRONLY | O_CREAT | O_EXCL) : -1;
    if (made < 0)
        return false;
    close(made);
    strcpy(place->directory, place->founder);
    *place->lineage = 0;
    return true;
}

static bool has_founder(const struct place *place)
{
    char path[PATH_BYTES];
    return snprintf(path, sizeof path, "%s/log.xml", place->founder) < PATH_BYTES && access(path, F_OK) == 0;
}

bool place_make(struct place *place, const char *step)
{
    int failed = has_founder(place) ? EEXIST : ENOENT;
    bool followed = false;
    for (int number = 1; failed == EEXIST && number < MOST_DESCENDANTS; number++) {
        int bytes = snprintf(place->lineage, sizeof place->lineage, "%s%d", step, number);
        if (bytes >= (int)sizeof place->lineage ||
            snprintf(place->directory, sizeof place->directory, "%s/%s.er", place->founder, place->lineage) >= PATH_BYTES)
            return false;
        followed = follow_matches(place->lineage);
        failed = followed ? directory_create(place->directory) : exclude(place);
    }
    return !failed && followed;
}
