/* The program that becomes the monitor of an experiment: it takes the lock of the experiment, waits, and executes the
   monitor's interpreter, which keeps the lock. An interpreter takes some ten milliseconds of a processor that the
   recorded program could use just then. A program that ends before costs no monitor, unless it has left descendants.

   Its words: the founder's directory, the number of the recorded process, how many milliseconds to wait, the
   interpreter and its words, of which the last is the number of the descriptor that has the lock. */
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

enum { FORKED_MS = 1000 }; /* so long may a child that was forked take until it has its directory */
enum { FOUNDER = 1, PROCESS, MILLISECONDS, INTERPRETER, FEWEST_WORDS = 6 };

static bool ends_within(pid_t process, int milliseconds)
{
    struct pollfd watched = {(int)syscall(SYS_pidfd_open, process, 0), POLLIN, 0};
    if (watched.fd < 0 && errno == ESRCH)
        return true;
    poll(&watched, 1, milliseconds); /* without a descriptor, where the kernel has none, it only waits */
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

/* A descendant that began meanwhile found the lock taken, and starts no monitor. It has made its directory before, so
   it is seen here, once the lock is free for those that come later. A child that was forked starts none anyway, and
   makes its directory by and by. */
static bool is_still_needed(int founder, pid_t process, int milliseconds)
{
    if (milliseconds == 0 || !ends_within(process, milliseconds))
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
