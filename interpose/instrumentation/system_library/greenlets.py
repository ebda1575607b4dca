"""gevent: what greenlets wait for of each other, and time; and the waits of its loop, which is written in C."""

from interpose.library import Intrinsic, alike

SEMAPHORE = ("gevent.lock.Semaphore.", "gevent._gevent_c_semaphore:Semaphore.")
EVENT = ("gevent.event.Event.", "gevent._gevent_cevent:Event.")
RESULT = ("gevent.event.AsyncResult.", "gevent._gevent_cevent:AsyncResult.")
QUEUE = ("gevent.queue.SimpleQueue.", "gevent._gevent_cqueue:SimpleQueue.")
GREENLET = ("gevent.Greenlet.", "gevent._gevent_cgreenlet:Greenlet.")

INTRINSICS = [
    Intrinsic("gevent.hub.Loop.poll", "gevent.libev.corecext:get_version", "net idle process", by="loop"),
    Intrinsic("gevent.sleep", "gevent.hub:sleep", "sleep idle"),
    Intrinsic("gevent.ThreadPool.get", "gevent._threading:Queue.get", "idle sync", waits=True),
    *alike(*SEMAPHORE, "acquire __enter__", "sync idle", waits=True),
    *alike(*EVENT, "wait", "sync idle db", waits=True),  # by which gevent's `select` and `poll` wait, too
    *alike(*RESULT, "get", "sync idle", waits=True),
    *alike(*QUEUE, "get", "idle sync", choice="queue", keyword="block", waits=True),
    *alike(*QUEUE, "put", "sync idle", waits=True),
    *alike(*GREENLET, "join get", "sync idle", waits=True),
    Intrinsic("gevent.joinall", "gevent._gevent_cgreenlet:joinall", "sync idle", waits=True),
]
