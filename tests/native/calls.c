/* A library as somebody could have written it, and a few that nobody should have. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

typedef ssize_t transfer(int, void *, size_t);

struct operations {
    transfer *read;
    ssize_t (*write)(int, const void *, size_t);
};
static struct operations kept = {read, write}; /* as sqlite keeps them */
static const struct operations fixed = {read, write};

transfer *address_of_read(void) { return read; }

long reads(int number, long times)
{
    char byte;
    long bytes = 0;
    for (long each = 0; each < times; each++)
        bytes += read(number, &byte, 1);
    return bytes;
}

long reads_by_table(int number, long times)
{
    char byte;
    long bytes = 0;
    for (long each = 0; each < times; each++)
        bytes += (each % 2 ? kept.read : fixed.read)(number, &byte, 1);
    return bytes;
}

int error_of_read(int number)
{
    char byte;
    errno = 0;
    return read(number, &byte, 1) < 0 ? errno : 0;
}

int error_after_read(int number, int before)
{
    char byte;
    errno = before;
    return read(number, &byte, 1) == 1 ? errno : -1;
}

int open_and_close(const char *path)
{
    int number = open(path, O_RDONLY);
    return number < 0 ? errno : close(number);
}

int moves(const char *path, const char *other)
{
    return rename(path, other);
}

int error_of_bad_path(void)
{
    const char *path = (const char *)8;
    return open(path, O_RDONLY) < 0 ? errno : 0;
}

/* A child that C code forks. */
int forked_reads(int number, long times)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(reads(number, times) == times ? 7 : 8);
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

/* --- a handler that does what handlers do: it writes a byte into a pipe */

static volatile sig_atomic_t written, pipe_end;

static void write_byte(int number)
{
    int saved = errno;
    (void)number;
    if (write(pipe_end, "x", 1) == 1)
        written++;
    errno = saved;
}

void storm_begin(int end, long us)
{
    struct sigaction action = {.sa_handler = write_byte, .sa_flags = SA_RESTART};
    struct itimerval every = {{0, us}, {0, us}};
    pipe_end = end;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

int storm_end(void)
{
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN);
    return written;
}

/* --- a handler that never returns */

static sigjmp_buf back;

static void jump(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

int jump_out_of_read(int number)
{
    struct sigaction action = {.sa_handler = jump};
    struct itimerval once = {{0, 0}, {0, 5000}};
    char byte;
    sigaction(SIGALRM, &action, NULL);
    if (sigsetjmp(back, 1))
        return 1;
    setitimer(ITIMER_REAL, &once, NULL);
    return read(number, &byte, 1) < 0 ? 0 : -1;
}

/* --- a thread of its own, which nobody waits for */

static int endless;

static void *read_for_ever(void *nothing)
{
    for (;;)
        reads(endless, 100);
    return nothing;
}

int thread_begin(int number)
{
    pthread_t thread;
    endless = number;
    return pthread_create(&thread, NULL, read_for_ever, NULL);
}

static void *read_some(void *times)
{
    reads(endless, (long)times);
    return NULL;
}

int thread_run(int number, long times)
{
    pthread_t thread;
    endless = number;
    return pthread_create(&thread, NULL, read_some, (void *)times) || pthread_join(thread, NULL);
}

static void *connect_to(void *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(long)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int made = socket(AF_INET, SOCK_STREAM, 0), failed = connect(made, (struct sockaddr *)&address, sizeof address);
    return (void *)(long)(failed ? -1 : made);
}

int thread_connects(long port)
{
    pthread_t thread;
    void *connected = (void *)-1;
    return pthread_create(&thread, NULL, connect_to, (void *)port) || pthread_join(thread, &connected) ? -1 : (int)(long)connected;
}

/* --- processes */

/* A child that is another program at once. */
int run_by_vfork(int status)
{
    char text[] = "exit 0", *words[] = {"sh", "-c", text, NULL};
    int found = -1;
    text[5] = (char)('0' + status);
    pid_t child = vfork();
    if (child == 0) {
        execv("/bin/sh", words);
        _exit(127);
    }
    return waitpid(child, &found, 0) == child ? WEXITSTATUS(found) : -1;
}

int run_shell(const char *command) { return system(command); }

int error_of_wait(void) { return waitpid(-1, NULL, 0) < 0 ? errno : 0; }

int error_of_exec(void) { return execv("/no/such", (char *[]){"such", NULL}) < 0 ? errno : 0; }

/* --- locks */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static volatile long guarded;

/* Each adds to a number that one alone may add to, and takes its time. */
long add_guarded(long times, long us)
{
    for (long each = 0; each < times; each++) {
        pthread_mutex_lock(&guard);
        long before = guarded;
        if (us)
            usleep((useconds_t)us);
        guarded = before + 1;
        pthread_mutex_unlock(&guard);
    }
    return guarded;
}

static int lock_twice(int type)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutex_init(&mutex, &attributes);
    errno = 77;
    int first = pthread_mutex_lock(&mutex), second = pthread_mutex_lock(&mutex);
    return first ? -1 : errno == 77 ? second : -2;
}

int lock_twice_checked(void) { return lock_twice(PTHREAD_MUTEX_ERRORCHECK); }

int lock_twice_recursive(void) { return lock_twice(PTHREAD_MUTEX_RECURSIVE); }

static pthread_mutex_t robust;

static void *die_with_lock(void *nothing)
{
    pthread_mutex_lock(&robust);
    return nothing;
}

/* What who comes after is told. */
int lock_of_the_dead(void)
{
    pthread_mutexattr_t attributes;
    pthread_t thread;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &attributes);
    pthread_create(&thread, NULL, die_with_lock, NULL);
    pthread_join(thread, NULL);
    return pthread_mutex_lock(&robust);
}

int time_out_of_condition(void)
{
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec past = {1, 0};
    pthread_mutex_lock(&guard);
    int result = pthread_cond_timedwait(&never, &guard, &past);
    pthread_mutex_unlock(&guard);
    return result;
}
