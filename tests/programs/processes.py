"""Children made in every way, spoken to, waited for and killed."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import warnings
from contextlib import suppress

warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 and later: of forks where there are threads

# By fork, and what a child becomes.
for _ in range(3):
    child = os.fork()  #: 3 os.fork
    if child == 0:
        os._exit(3)
    os.waitpid(child, 0)  #: 3 os.waitpid
with suppress(ChildProcessError):
    os.waitpid(-1, 0)  #: os.waitpid idle error=ChildProcessError errno 10
for wait in (os.wait, os.wait3, os.wait4, os.waitid):
    child = os.fork()  #: 4 os.fork
    if child == 0:
        os._exit(0)
    if wait is os.wait:
        os.wait()  #: os.wait
    elif wait is os.wait3:
        os.wait3(0)  #: os.wait3
    elif wait is os.wait4:
        os.wait4(child, 0)  #: os.wait4
    else:
        os.waitid(os.P_PID, child, os.WEXITED)  #: os.waitid
child, terminal = os.forkpty()  #: os.forkpty
if child == 0:
    os._exit(0)
os.waitpid(child, 0)  #: os.waitpid
child = os.fork()  #: os.fork
if child == 0:
    with suppress(FileNotFoundError):
        os.execv("/nowhere", ["nowhere"])  #: os.execv detail=/nowhere error=FileNotFoundError errno 2
    os.execv("/bin/true", ["true"])  #: 0 os.execv
os.waitpid(child, 0)  #: os.waitpid
child = os.fork()  #: os.fork
if child == 0:
    with suppress(FileNotFoundError):
        os.execve("/nowhere", ["nowhere"], {})  #: os.execve detail=/nowhere error=FileNotFoundError errno 2
    os.execve("/bin/true", ["true"], {})  #: 0 os.execve
os.waitpid(child, 0)  #: os.waitpid

# Without a fork of ours.
child = os.posix_spawn("/bin/true", ["true"], os.environ)  #: os.posix_spawn detail=/bin/true
os.waitpid(child, 0)  #: os.waitpid
with suppress(FileNotFoundError):
    #: os.posix_spawn detail=/nowhere error=FileNotFoundError errno 2
    os.posix_spawn("/nowhere", ["nowhere"], os.environ)
child = os.posix_spawnp("true", ["true"], os.environ)  #: os.posix_spawnp detail=true
os.waitpid(child, 0)  #: os.waitpid
assert os.system("COLOUR=red true --secret") == 0  #: os.system detail=true
#: subprocess.Popen detail=true & within subprocess.fork_exec detail=true
child = subprocess.Popen(["true", "--secret"])
child.wait()  #: subprocess.Popen.wait & within os.waitpid
#: subprocess.Popen detail=cat & within subprocess.fork_exec detail=/bin/sh
child = subprocess.Popen("cat", shell=True, stdin=-1, stdout=-1, start_new_session=True)
assert child.communicate(b"echo")[0] == b"echo"  #: subprocess.Popen.communicate
with suppress(FileNotFoundError):
    #: subprocess.Popen detail=no-such error=FileNotFoundError errno 2 & within subprocess.fork_exec detail=no-such
    subprocess.Popen(["no-such"])
#: subprocess.Popen detail=sleep & within subprocess.fork_exec detail=sleep
child = subprocess.Popen(["sleep", "60"])
with suppress(subprocess.TimeoutExpired):
    child.wait(0.01)  #: subprocess.Popen.wait error=TimeoutExpired
os.close(os.pidfd_open(child.pid))  #: os.pidfd_open
os.kill(child.pid, signal.SIGTERM)  #: os.kill
child.wait()  #: subprocess.Popen.wait
with suppress(ProcessLookupError):
    os.kill(child.pid, 0)  #: os.kill error=ProcessLookupError errno 3
#: subprocess.Popen detail=sleep & within subprocess.fork_exec detail=sleep
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
os.killpg(child.pid, signal.SIGTERM)  #: os.killpg
child.wait()  #: subprocess.Popen.wait

# Signals.
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.pause()  #: signal.pause
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
for _ in range(2):
    os.kill(os.getpid(), signal.SIGUSR1)  #: 2 os.kill
    signal.sigwait([signal.SIGUSR1])  #: 2 within signal.sigwait
os.kill(os.getpid(), signal.SIGUSR1)  #: os.kill
signal.sigwaitinfo([signal.SIGUSR1])  #: signal.sigwaitinfo
assert signal.sigtimedwait([signal.SIGUSR1], 0.001) is None  #: signal.sigtimedwait
with suppress(ValueError):
    signal.sigtimedwait([signal.SIGUSR1], -1)  #: signal.sigtimedwait error=ValueError

# What multiprocessing makes of it.
context = multiprocessing.get_context("fork")


def work(connection, queue, simple):
    for _ in range(2):
        asked = connection.recv()  #: 2 multiprocessing.connection.Connection.recv
        connection.send(asked)  #: 2 multiprocessing.connection.Connection.send
    queue.put("done")
    simple.put("done")


here, there = context.Pipe()
queue, simple = context.Queue(), context.SimpleQueue()
child = context.Process(target=work, args=(there, queue, simple))
child.start()  #: multiprocessing.Process.start
for _ in range(2):
    here.send("question")  #: 2 multiprocessing.connection.Connection.send
    assert here.poll(10)  #: 2 multiprocessing.connection.Connection.poll
    assert here.recv() == "question"  #: 2 multiprocessing.connection.Connection.recv
assert queue.get() == "done"  #: multiprocessing.Queue.get
assert simple.get() == "done"  #: multiprocessing.SimpleQueue.get
child.join()  #: multiprocessing.Process.join
here.send_bytes(b"back")  #: multiprocessing.connection.Connection.send_bytes
assert multiprocessing.connection.wait([there]) == [there]  #: multiprocessing.connection.wait
#: multiprocessing.connection.Connection.recv_bytes & 2 within os.read idle bytes=4 detail=<socket>
assert there.recv_bytes() == b"back"
here.send_bytes(b"back")  #: multiprocessing.connection.Connection.send_bytes
there.recv_bytes_into(bytearray(4))  #: multiprocessing.connection.Connection.recv_bytes_into
here.close()
with suppress(EOFError):
    there.recv()  #: multiprocessing.connection.Connection.recv error=EOFError
sys.stdout.flush()
