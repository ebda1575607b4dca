"""What starts a program on a small stack, or with bad pointers, does what it would have done."""

import json
import subprocess

import pytest
from tracing import same_library

pytestmark = same_library

RUN = """
import json, subprocess, sys
outputs = [subprocess.run(words, stdout=subprocess.PIPE, text=True).stdout for words in json.loads(sys.argv[1])]
print(json.dumps(outputs))
"""


@pytest.fixture
def outcomes(traced, compiler, tmp_path):
    """Run a program in C with each of these arguments, by itself and recorded: both outputs, and the experiment."""

    def run(source, *arguments):
        (tmp_path / "program.c").write_text("#define _GNU_SOURCE\n" + source)
        program = tmp_path / "program"
        subprocess.run([compiler, "-O1", "-w", "-pthread", "-o", program, tmp_path / "program.c"], check=True)
        given = json.dumps([[str(program), *argument.split()] for argument in arguments])
        plain, done = (traced(RUN, given, INTERPOSE=value) for value in ("0", "calls,native"))
        assert done.returncode == 0, done.stderr
        return json.loads(plain.stdout), json.loads(done.stdout), done.experiment

    return run


STARTS = """
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static char *words[] = {"true", 0};
static const char *how;
static int status = -1;
static int becomes(void *nothing)
{
    (void)nothing;
    if (!strcmp(how, "cloned-reading")) {
        char byte;
        int number = open("/dev/zero", O_RDONLY);
        if (number < 0 || read(number, &byte, 1) != 1 || access("/dev/null", R_OK) || close(number))
            return 8;
    }
    if (!strcmp(how, "execvp") || !strcmp(how, "cloned-execvp"))
        execvp("true", words);
    execve("/bin/true", words, environ);
    return 9;
}
static void *starts(void *nothing)
{
    pid_t child = -1;
    if (!strcmp(how, "posix_spawn"))
        posix_spawn(&child, "/bin/true", 0, 0, words, environ);
    else if (!strcmp(how, "posix_spawnp"))
        posix_spawnp(&child, "true", 0, 0, words, environ);
    else if (!strcmp(how, "vfork")) {
        if ((child = vfork()) == 0)
            _exit(becomes(0));
    } else if ((child = fork()) == 0)
        _exit(becomes(0));
    waitpid(child, &status, 0);
    return nothing;
}
int main(int count, char **given)
{
    size_t bytes = (size_t)atoi(given[2]);
    how = given[1];
    if (!strncmp(how, "cloned", 6)) {
        int shared = !strcmp(how, "cloned-shared") ? CLONE_VM | CLONE_VFORK : 0;
        char *stack = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        waitpid(clone(becomes, stack + bytes, shared | SIGCHLD, 0), &status, 0);
    } else {
        pthread_attr_t attributes;
        pthread_t thread;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, bytes);
        pthread_create(&thread, &attributes, starts, 0);
        pthread_join(thread, 0);
    }
    return printf("%s %zu: %x\\n", how, bytes, status) < 0;
}
"""
IN_THREADS = ("posix_spawn", "posix_spawnp", "fork", "execvp", "vfork")
CLONED = ("cloned", "cloned-execvp", "cloned-reading", "cloned-shared")


def test_a_small_stack_is_enough_to_start_a_program(outcomes):
    threads = [f"{how} {bytes}" for how in IN_THREADS for bytes in (16384, 20480, 24576)]
    clones = [f"{how} {bytes}" for how in CLONED for bytes in (4096, 8192, 16384)]

    plain, recorded, experiment = outcomes(STARTS, *threads, *clones)

    names = [each.log.executable.rpartition("/")[2] for each in experiment.processes if each.lineage]
    assert recorded == plain
    assert set(plain) == {f"{each}: 0\n" for each in (*threads, *clones)}
    assert len([name for name in names if name != "program"]) == len(threads) + len(clones)


BAD_POINTERS = """
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
extern char **environ;
#define SAY(call) do { errno = 0; long result = (long)(call); printf("%s: %ld %d\\n", #call, result, errno); } while (0)
int main(void)
{
    char *bad = (char *)16, *words[] = {"true", 0}, *wrong[] = {"A=1", bad, 0}, *page, text[4096];
    char **list = (char **)bad;
    struct statx status;
    pid_t child;
    int bin = open("/bin", O_PATH);
    page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[4095] = 'x'; /* the text has no end before the page has */
    mprotect(page + 4096, 4096, PROT_NONE);
    setvbuf(stdout, text, _IOFBF, sizeof text);
    SAY(unlinkat(5, bad, 12345));
    SAY(statx(1, bad, -1, 0, &status));
    SAY(statx(1, page + 4095, -1, 0, &status));
    SAY(fstatat(1, bad, (struct stat *)text, 12345));
    SAY(rename("missing/one", bad));
    SAY(rename("", page + 4095));
    SAY(execve(bad, words, environ));
    SAY(execve(page + 4095, words, environ));
    SAY(execve("/bin/true", words, list));
    SAY(execve("/bin/true", words, wrong));
    SAY(execve("/bin/true", list, environ));
    SAY(execve("/bin/true", wrong, environ));
    SAY(execv(bad, words));
    SAY(execveat(bin, NULL, words, environ, 0));
    SAY(execveat(bin, bad, words, environ, 0));
    SAY(execveat(bin, "true", words, list, 0));
    SAY(fexecve(bin, words, list));
    SAY(posix_spawn(&child, bad, 0, 0, words, environ));
    SAY(posix_spawn(&child, "/bin/true", 0, 0, words, list));
    return 0;
}
"""


def test_pointers_that_the_kernel_refuses_are_not_read(outcomes):
    plain, recorded, _ = outcomes(BAD_POINTERS, "")

    assert recorded == plain
    assert plain[0].count("\n") == 19


FILTERED = """
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    if (count > 1)
        return printf("%d\\n", open("/dev/null", O_RDONLY | O_DIRECTORY)) < 0;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
    execl(words[0], words[0], "opens", NULL);
}
"""


def test_one_under_a_filter_of_system_calls_makes_none_of_ours_for_it(outcomes):
    plain, recorded, _ = outcomes(FILTERED, "")

    assert recorded == plain == ["-1\n"]


CANCELLED = """
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <unistd.h>
extern char **environ;
static void *starts(void *nothing)
{
    char *words[] = {"true", 0};
    pid_t child;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
    pthread_cancel(pthread_self());
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, 0);
    puts(posix_spawn(&child, "/bin/true", 0, 0, words, environ) ? "failed" : "started");
    pthread_testcancel();
    return nothing;
}
int main(void)
{
    pthread_t thread;
    void *result;
    setvbuf(stdout, 0, _IOFBF, BUFSIZ);
    pthread_create(&thread, 0, starts, 0);
    pthread_join(thread, &result);
    return puts(result == PTHREAD_CANCELED ? "cancelled" : "ended") < 0;
}
"""


def test_a_thread_is_not_cancelled_where_it_starts_a_program(outcomes):
    plain, recorded, _ = outcomes(CANCELLED, "")

    assert recorded == plain == ["started\ncancelled\n"]


STARTS_IN_PYTHON = """
import os, subprocess, sys, threading
def starts():
    own = [sys.executable, "-c", "pass"]
    ends.append(subprocess.run(own, executable=own[0], cwd="/", env={}).returncode)
    ends.append(os.waitpid(os.posix_spawnp(own[0], own, os.environ), 0)[1])
    ends.append(os.waitpid(os.posix_spawnp("true", ["true"], os.environ), 0)[1])
    ends.append(os.system("true"))
    child = os.fork()
    if not child:
        os.execvp("true", ["true"])
    ends.append(os.waitpid(child, 0)[1])
ends = []
threading.stack_size(32768)
thread = threading.Thread(target=starts)
thread.start()
thread.join()
print(ends)
"""


@pytest.mark.parametrize("recorded", ["calls", "calls,native"])
def test_a_small_stack_is_enough_to_start_a_program_from_python(traced, recorded):
    plain = traced(STARTS_IN_PYTHON, INTERPOSE="0")
    if plain.returncode:
        pytest.skip("such a stack is too small for this Python")

    done = traced(STARTS_IN_PYTHON, INTERPOSE=recorded)

    assert done.stdout == plain.stdout == "[0, 0, 0, 0, 0]\n"
