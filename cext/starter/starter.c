/* The program that becomes the monitor of an experiment: it takes the lock of the experiment, waits, and executes the
   monitor's interpreter, which keeps the lock. Starting an interpreter takes some ten milliseconds of CPU time, which
   the recorded program needs for its own start. If the program ends during the wait and has left no descendants, no
   interpreter is started.

   Its arguments: the founder's directory, the process id of the recorded process, how many milliseconds to wait, and
   the interpreter with its own arguments. The last of those is the descriptor that is to hold the lock. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FORKED_MS = 1000 }; /* how long a forked child may take to make its directory */
enum { FOUNDER = 1, PROCESS, MILLISECONDS, INTERPRETER, FEWEST_WORDS = 6 };

static bool ends_within(pid_t process, int milliseconds)
{
    struct pollfd watched = {(int)syscall(SYS_pidfd_open, process, 0), POLLIN, 0};
    if (watched.fd < 0 && errno == ESRCH)
        return true;
    poll(&watched, 1, milliseconds); /* if the kernel has no pidfd_open, this only waits */
    if (watched.fd >= 0)
        close(watched.fd);
    return watched.revents || (kill(process, 0) && errno == ESRCH);
}

/* Is a descendant of the founder recorded? */
static bool has_descendants(int founder)
{
    static const char suffix[] = ".er";
    bool found = false;
    int anew = openat(founder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = anew < 0 ? NULL : fdopendir(anew);
    for (struct dirent *each; directory && !found && (each = readdir(directory));) {
        size_t length = strlen(each->d_name);
        found = length > strlen(suffix) && strcmp(each->d_name + length - strlen(suffix), suffix) == 0;
    }
    if (directory)
        closedir(directory);
    return found;
}

static bool is_locked(int founder)
{
    return flock(founder, LOCK_EX | LOCK_NB) == 0;
}

/* A descendant that began during the wait found the lock taken, so it starts no monitor. It made its directory first,
   so we find it here. We release the lock before we look, so that later descendants can start a monitor. A forked child
   never starts one, and may make its directory late. */
static bool is_still_needed(int founder, pid_t process, int milliseconds)
{
    if (!ends_within(process, milliseconds))
        return true;
    flock(founder, LOCK_UN);
    if (!has_descendants(founder))
        poll(NULL, 0, FORKED_MS);
    return has_descendants(founder) && is_locked(founder);
}

int main(int count, char **words)
{
    if (count < FEWEST_WORDS)
        return EXIT_FAILURE;
    int kept_at = atoi(words[count - 1]), opened = open(words[FOUNDER], O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    int founder = opened == kept_at ? opened : dup2(opened, kept_at);
    if (founder < 0 || !is_locked(founder) || !is_still_needed(founder, atoi(words[PROCESS]), atoi(words[MILLISECONDS])))
        return EXIT_SUCCESS;
    if (opened != kept_at)
        close(opened);
    execv(words[INTERPRETER], words + INTERPRETER);
    return EXIT_FAILURE;
}
