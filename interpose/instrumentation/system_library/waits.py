"""What threads wait for: the interpreter lock, locks and what is made of them, each other, and time.

A free lock is passed through; a wait shorter than the threshold is counted. A worker that waits for its queue is idle,
but not who waits for a connection of a pool; what waits inside of a wait for processes is a part of that.
"""

from interpose.library import Intrinsic, alike

LOCK = ("threading.Lock.", "_thread:LockType.")
RLOCK = ("threading.RLock.", "_thread:RLock.")
SEMAPHORE = ("multiprocessing.SemLock.", "_multiprocessing:SemLock.")

TOLD = {"choice": "queue", "keyword": "block"}  # idle, unless it is told not to wait, or a pool takes from its stock
GIVEN = {"choice": "worker", "waits": True}
TAKEN = {"detail": "holder", "argument": None, "waits": True}

INTRINSICS = [
    Intrinsic(
        "interpreter lock",
        "interpose.timing.shims:know_gil_waits",
        "gil",
        detail="holder",
        argument=None,
        by="import",
        waits=True,
    ),
    Intrinsic("time.sleep", "time:sleep", "sleep idle process"),
    *alike(*LOCK, "acquire", "sync idle process net", lock="plain", choice="worker", **TAKEN),
    *alike(*LOCK, "acquire_lock __enter__", "sync idle process net", lock="plain", **TAKEN),
    *alike(*RLOCK, "acquire __enter__ _acquire_restore", "sync idle process", lock="recursive", **TAKEN),
    *alike(*SEMAPHORE, "acquire __enter__", "sync idle", lock="semaphore", waits=True),
    *alike("threading.Condition.", "threading:Condition.", "wait", "sync idle process net", **GIVEN),
    *alike("threading.Semaphore.", "threading:Semaphore.", "acquire", "sync idle", waits=True),
    *alike("threading.Event.", "threading:Event.", "wait", "sync idle process", **GIVEN),
    *alike("threading.Barrier.", "threading:Barrier.", "wait", "sync idle", waits=True),
    *alike("threading.Thread.", "threading:Thread.", "join", "sync idle process", waits=True),
    *alike("threading.", "threading:", "_shutdown", "sync", waits=True),
    *alike("_thread._ThreadHandle.", "_thread:_ThreadHandle.", "join", "sync idle process", waits=True),
    *alike("queue.Queue.", "queue:Queue.", "get", "idle sync", **TOLD, waits=True),
    *alike("queue.Queue.", "queue:Queue.", "put join", "sync idle", waits=True),
    Intrinsic("asyncio.sleep", "asyncio.tasks:sleep", "sleep idle"),
    Intrinsic("asyncio.wait", "asyncio.tasks:wait", "sync idle"),
    *alike("asyncio.Lock.", "asyncio.locks:Lock.", "acquire", "sync idle", waits=True),
    *alike("asyncio.Event.", "asyncio.locks:Event.", "wait", "sync idle", waits=True),
    *alike("asyncio.Condition.", "asyncio.locks:Condition.", "wait", "sync idle", waits=True),
    *alike("asyncio.Semaphore.", "asyncio.locks:Semaphore.", "acquire", "sync idle", waits=True),
    *alike("asyncio.Barrier.", "asyncio.locks:Barrier.", "wait", "sync idle", waits=True),
    *alike("asyncio.Queue.", "asyncio.queues:Queue.", "get", "idle sync", choice="stock", waits=True),
    *alike("asyncio.Queue.", "asyncio.queues:Queue.", "put join", "sync idle", waits=True),
    *alike("queue.SimpleQueue.", "_queue:SimpleQueue.", "get", "idle sync", **TOLD, waits=True),
]
