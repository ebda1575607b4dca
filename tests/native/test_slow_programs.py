"""The first screen of programs in C that are slow for one known reason, or not slow: what it names first."""

import subprocess

import pytest
from tracing import same_library

pytestmark = same_library

SLEEPS = "int main(void) { for (int each = 0; each < 40; each++) usleep(5000); }"
WRITES = """
int main(void)
{
    static char data[1 << 20];
    int file = open("written", O_CREAT | O_WRONLY, 0600);
    for (int each = 0; each < 300; each++)
        (void)!write(file, data, sizeof data);
    unlink("written");
}
"""
THREADS = """
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int work, is_over;
static const struct timespec late = {.tv_sec = 1L << 40};
static void *run(void *nothing) { %s }
int main(void)
{
    pthread_t threads[4];
    for (int each = 0; each < 4; each++)
        pthread_create(&threads[each], NULL, run, NULL);
    %s
    for (int each = 0; each < 4; each++)
        pthread_join(threads[each], NULL);
}
"""
HOLDS_A_LOCK = """
for (int each = 0; each < 20; each++) {
    pthread_mutex_lock(&lock);
    usleep(5000);
    pthread_mutex_unlock(&lock);
    usleep(1000);
}
return NULL;
"""
HOLDS_A_TIMED_LOCK = HOLDS_A_LOCK.replace("mutex_lock(&lock", "mutex_clocklock(&lock, CLOCK_MONOTONIC, &late")
WORKS = """
for (;;) {
    pthread_mutex_lock(&lock);
    while (!work && !is_over)
        pthread_cond_wait(&changed, &lock);
    int has_work = work ? work-- : 0;
    pthread_mutex_unlock(&lock);
    if (!has_work)
        return NULL;
}
"""
GIVES_WORK = """
for (int each = 0; each < 3; each++) {
    usleep(100000 / (each + 1));
    pthread_mutex_lock(&lock);
    work++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}
pthread_mutex_lock(&lock);
is_over = 1;
pthread_cond_broadcast(&changed);
pthread_mutex_unlock(&lock);
"""
SERVES = """
int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int serving = socket(AF_INET, SOCK_STREAM, 0);
    bind(serving, (void *)&address, length);
    listen(serving, 5);
    getsockname(serving, (void *)&address, &length);
    if (!fork()) {
        int client = socket(AF_INET, SOCK_STREAM, 0);
        usleep(200000);
        connect(client, (void *)&address, length);
        usleep(200000);
        (void)!write(client, "a", 1);
        _exit(0);
    }
    char byte;
    (void)!read(accept(serving, NULL, NULL), &byte, 1);
}
"""
HEAD = "#define _GNU_SOURCE\n" + "".join(
    f"#include <{name}.h>\n"
    for name in ("arpa/inet", "fcntl", "pthread", "sys/msg", "sys/socket", "sys/wait", "unistd")
)


@pytest.fixture
def screen(interpose, tmp_path, compiler):
    """The words of the first screen of a program in C."""

    def of(source, *options, line="./slow"):
        (tmp_path / "work" / "slow.c").write_text(HEAD + source)
        words = [compiler, "-O1", "-g", "-pthread", "-o", tmp_path / "work" / "slow", tmp_path / "work" / "slow.c"]
        subprocess.run(words, check=True, capture_output=True)
        interpose("run", *options, "sh", "-c", line) if line != "./slow" else interpose("run", *options, line)
        return " ".join(interpose("report").stdout.split())

    return of


MESSAGES = """
static int queue;
static void *sends(void *message)
{
    usleep(200000);
    msgsnd(queue, message, 1, 0);
    return NULL;
}
int main(void)
{
    struct { long type; char text[8]; } message = {.type = 1}, sent = {.type = 1};
    pthread_t thread;
    queue = msgget(IPC_PRIVATE, 0600);
    pthread_create(&thread, NULL, sends, &sent);
    msgrcv(queue, &message, 8, 0, 0);
    pthread_join(thread, NULL);
    msgctl(queue, IPC_RMID, NULL);
}
"""
FUNCTIONS = "See in which functions: record with --native-stack functions."


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "told"),
    [
        (SLEEPS, "Slowest: 40 calls of libc.usleep from slow, "),
        (WRITES, "Slowest: 300 calls of libc.write from slow, "),
        (THREADS % ("usleep(150000); return NULL;", ""), "Slowest: 4 calls of libc.usleep from slow, "),
        (THREADS % (HOLDS_A_LOCK, ""), "Slowest: 4 threads waited "),
        (THREADS % (HOLDS_A_TIMED_LOCK, ""), "Slowest: 4 threads waited "),
    ],
    ids=["sleeps", "writes", "sleeping threads", "lock", "lock with a timeout"],
)
def test_what_a_program_without_lines_waits_for_is_named_with_it(screen, source, told):
    words = screen(source)

    assert told in words
    assert FUNCTIONS in words
    assert "pthread_join" not in words


def test_a_wait_for_a_message_is_none_for_a_child_process(screen):
    words = screen(MESSAGES)

    assert "child process" not in words
    assert " process 1 " in words or " process 2 " in words  # its row: msgrcv and, maybe, msgsnd


@pytest.mark.long
def test_waits_for_locks_are_told_with_the_program_or_the_function(screen):
    by_program = screen(THREADS % (HOLDS_A_LOCK, ""))
    by_function = screen(THREADS % (HOLDS_A_LOCK, ""), "--native-stack", "functions")

    assert " times for locks (libc.pthread_mutex_lock) in slow (" in by_program
    assert " times for locks (libc.pthread_mutex_lock) in slow:? run (" in by_function
    assert "Hold the lock for a shorter time" in by_function


@pytest.mark.long
def test_waits_of_which_nobody_knows_the_cause_are_no_cause_but_stand_out(screen):
    words = screen(THREADS % (WORKS, "usleep(100000);" + GIVES_WORK))

    assert "Slowest: 4 calls of libc.usleep from slow, " in words
    assert "waited for locks" not in words

    words = screen(THREADS % (WORKS, GIVES_WORK), "--kinds", "sync")

    assert "Slowest" not in words
    assert "No single cause is known: calls of kind sync waited for " in words
    assert ", mostly libc.pthread_cond_wait." in words


@pytest.mark.parametrize("options", [[], ["--native-stack", "functions"]])
def test_a_server_that_waits_for_clients_is_not_slow(screen, options):
    told, _, table = screen(SERVES, *options).partition(" calls self wall")

    assert " idle 1 " in table
    assert "libc.accept" not in told
    assert "libc.read" not in told


def test_a_child_process_that_only_sleeps_is_what_its_parent_waits_for(screen):
    words = screen(SLEEPS, line="sleep 0.2; sleep 0.2; true")

    assert "Slowest: The program waited" in words
    assert "libc.nanosleep" not in words.partition(" calls self wall")[0]


def test_a_forked_child_has_the_name_of_what_it_became(screen):
    words = screen('int main(void) { if (!fork()) execlp("sleep", "sleep", "0.3", NULL); wait(NULL); }')

    assert "for child processes (sleep) at slow (" in words
