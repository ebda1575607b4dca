"""Child processes: starting them, and waiting for them.

A process that waits for a child it started needs that child: the wait is of the kind `process`. A process that waits
for whichever child ends first, such as the master of a server, is idle; so is one that waits for what others send
through a pipe or a queue.
"""

from interpose.library import Intrinsic, alike

OS = ("os.", "posix:")
SIGNAL = ("signal.", "_signal:")
POPEN = ("subprocess.Popen.", "subprocess:Popen.")
TOLD = {"choice": "queue", "keyword": "block"}  # idle, unless it is told not to wait
RESULT = {"choice": "pool", "attribute": "_pool", "waits": True}  # a pool of threads has results of the same types
CHANNEL = ("multiprocessing.connection.Connection.", "multiprocessing.connection:_ConnectionBase.")

INTRINSICS = [
    *alike(*OS, "fork forkpty", "process", effect="fork"),
    *alike(*OS, "pidfd_open", "process", effect="make"),
    *alike(*OS, "execv", "process", detail="program", effect="exec", passes="own"),
    *alike(*OS, "execve", "process", detail="program", effect="exec", passes="mapping"),
    *alike(*OS, "posix_spawn", "process", detail="program", effect="spawn", passes="spawn"),
    *alike(*OS, "posix_spawnp", "process", detail="program", effect="search", passes="search"),
    *alike(*OS, "system", "process", detail="command", effect="shell", passes="shell"),
    *alike(*OS, "kill killpg", "process"),
    *alike(*OS, "wait wait3", "idle process", effect="wait"),
    *alike(*OS, "waitpid wait4", "process idle", choice="child", effect="wait"),
    *alike(*OS, "waitid", "process idle", choice="child", effect="waitid"),
    Intrinsic(
        "subprocess.fork_exec",
        "_posixsubprocess:fork_exec",
        "process",
        detail="command",
        effect="fork_exec",
        passes="list",
    ),
    Intrinsic("subprocess.Popen", "subprocess:Popen.__init__", "process", detail="command", effect="popen"),
    *alike(*POPEN, "wait communicate", "process"),
    *alike("asyncio.subprocess.Process.", "asyncio.subprocess:Process.", "wait communicate", "process"),
    Intrinsic("multiprocessing.Process.start", "multiprocessing.process:BaseProcess.start", "process"),
    Intrinsic("multiprocessing.Process.join", "multiprocessing.process:BaseProcess.join", "process"),
    Intrinsic("multiprocessing.Pool.wait", "multiprocessing.pool:ApplyResult.wait", "process sync", **RESULT),
    Intrinsic("multiprocessing.Pool.next", "multiprocessing.pool:IMapIterator.next", "process sync", **RESULT),
    *alike(*CHANNEL, "send send_bytes", "process"),
    *alike(*CHANNEL, "recv recv_bytes recv_bytes_into poll", "idle process"),
    Intrinsic("multiprocessing.connection.wait", "multiprocessing.connection:wait", "idle process"),
    Intrinsic("multiprocessing.Queue.get", "multiprocessing.queues:Queue.get", "idle process", **TOLD),
    Intrinsic("multiprocessing.SimpleQueue.get", "multiprocessing.queues:SimpleQueue.get", "idle process"),
    *alike(*SIGNAL, "pause sigwait sigwaitinfo sigtimedwait", "idle"),
]
