"""Locks, signs and queues that nobody else uses: what is free or there is had without a wait."""

import multiprocessing
import queue
import threading
import time
from contextlib import suppress

for _ in range(3):
    time.sleep(0)  #: 3 time.sleep
with suppress(ValueError):
    time.sleep(-1)  #: time.sleep error=ValueError

lock = threading.Lock()
for _ in range(5):
    lock.acquire()  #: 5 threading.Lock.acquire
    lock.release()
for _ in range(4):
    with lock:  #: 4 threading.Lock.__enter__
        #: 4 threading.Lock.acquire detail=held by thread ... at /cwd/program.py:19 <module>
        assert not lock.acquire(False)
        #: 4 threading.Lock.acquire detail=held by thread ... at /cwd/program.py:19 <module>
        assert not lock.acquire(timeout=0.001)
with suppress(ValueError):
    lock.acquire(False, 1)  #: threading.Lock.acquire error=ValueError
lock.acquire_lock()  #: threading.Lock.acquire_lock
lock.release()

again = threading.RLock()
for _ in range(3):
    with again:  #: 3 threading.RLock.__enter__
        again.acquire()  #: 3 threading.RLock.acquire
        again.release()
with suppress(TypeError):
    again.acquire(timeout="soon")  #: threading.RLock.acquire error=TypeError

shared = multiprocessing.get_context("fork").Lock()
for _ in range(2):
    with shared:  #: 2 within multiprocessing.SemLock.__enter__
        assert not shared.acquire(False)  #: 2 multiprocessing.SemLock.acquire
with suppress(TypeError):
    shared.acquire(timeout="soon")  #: multiprocessing.SemLock.acquire error=TypeError

condition = threading.Condition()
with condition:
    for _ in range(2):
        #: 2 threading.Condition.wait & 2 within threading.RLock._acquire_restore & 4 within threading.Lock.acquire
        assert not condition.wait(0.001)
with suppress(RuntimeError):
    condition.wait()  #: threading.Condition.wait error=RuntimeError
places = threading.Semaphore(3)
for _ in range(3):
    places.acquire()  #: 3 threading.Semaphore.acquire
assert not places.acquire(timeout=0.001)  #: threading.Semaphore.acquire
places.release()
with places:  #: threading.Semaphore.acquire
    pass
sign = threading.Event()
assert not sign.wait(0.001)  #: threading.Event.wait
sign.set()
for _ in range(3):
    sign.wait()  #: 3 threading.Event.wait
gate = threading.Barrier(1)
for _ in range(3):
    gate.wait()  #: 3 threading.Barrier.wait
gate.abort()
with suppress(threading.BrokenBarrierError):
    gate.wait()  #: threading.Barrier.wait error=BrokenBarrierError
thread = threading.Thread(target=int)
with suppress(RuntimeError):
    thread.join()  #: threading.Thread.join error=RuntimeError
thread.start()
thread.join()  #: threading.Thread.join & within _thread._ThreadHandle.join
thread.join()  #: threading.Thread.join & within _thread._ThreadHandle.join

work = queue.Queue(2)
for _ in range(2):
    work.put("task")  #: 2 queue.Queue.put
with suppress(queue.Full):
    work.put("task", timeout=0.001)  #: queue.Queue.put error=Full
for _ in range(2):
    work.get()  #: 2 queue.Queue.get
    work.task_done()
with suppress(queue.Empty):
    work.get(timeout=0.001)  #: queue.Queue.get error=Empty
work.join()  #: queue.Queue.join
simple = queue.SimpleQueue()
simple.put("task")
simple.get()  #: queue.SimpleQueue.get
with suppress(queue.Empty):
    simple.get(timeout=0.001)  #: queue.SimpleQueue.get error=Empty
#: nowhere threading._shutdown
