"""Programs whose first thread ends before the others: the kernel then tells nothing of the process by its number."""

import socket
import subprocess
import sys

import pytest
from tracing import environment, events_of, same_library

from interpose.analysis.recording.ending import ending, has_mapped
from interpose.experiments.model.experiment import Experiment

CALLS = """
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static char state_of_first(void)
{
    char text[256] = "";
    FILE *file = fopen("/proc/self/stat", "r");
    fgets(text, sizeof text, file);
    fclose(file);
    return strrchr(text, ')')[2];
}
static void *work(void *port)
{
    char byte;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    while (state_of_first() != 'Z')
        usleep(1000);
    read(open("/dev/zero", O_RDONLY), &byte, 1);
    connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&to, sizeof to);
    return NULL;
}
int main(int count, char **words)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, words[1]);
    pthread_exit(NULL);
}
"""

WAITS = """
import ctypes, os, sys, threading
def work():
    while ") Z " not in open("/proc/self/stat").read(): pass
    print("alone", flush=True)
    sys.stdin.readline()
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
"""

@same_library
def test_calls_of_the_others_have_their_details(client, interpose, work):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        done = interpose("run", client(CALLS, "-pthread"), str(port))

    assert (done.returncode, done.stderr) == (0, "")
    (process,) = Experiment(str(work / "test.1.er")).processes
    details = {process.intrinsic(each.intrinsic).name: process.string(each.detail) for each in events_of(process)}
    assert (details["libc.read"], details["libc.connect"]) == ("/dev/zero", f"127.0.0.1:{port}")


@pytest.mark.long
def test_the_process_runs_and_is_controlled_by_its_number(interpose, work):
    words = [sys.executable, "-c", WAITS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, cwd=work, env=environment(INTERPOSE="calls"), **pipes) as program:
        assert program.stdout.readline() == "alone\n"
        founder = Experiment(str(work / "test.1.er")).founder
        paused = interpose("control", str(program.pid), "pause")
        shown = interpose("control", str(program.pid))
        ended, is_mapped = ending(founder), has_mapped(founder.directory, program.pid)
        program.communicate("\n")

    assert (ended.state, is_mapped) == ("running", True)
    assert (paused.returncode, paused.stderr) == (0, "")
    assert f"process {program.pid}  paused" in shown.stdout
    assert not has_mapped(founder.directory, program.pid)
