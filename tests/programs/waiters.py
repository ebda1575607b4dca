"""What is free is had at once; then everything is waited for, once or twice, until another thread lets go."""

import multiprocessing
import queue
import threading
import time

LONG_S = 0.1


def later(act, *arguments):
    """Another thread does it after a while."""

    def wait_and_act():
        time.sleep(LONG_S)
        act(*arguments)

    thread = threading.Thread(target=wait_and_act, daemon=True)
    thread.start()
    return thread


def hold(lock, taken):
    with lock:
        taken.append(True)
        time.sleep(LONG_S)


def held(lock):
    """Another thread has the lock, for a while."""
    taken = []
    threading.Thread(target=hold, args=(lock, taken), daemon=True).start()
    while not taken:
        time.sleep(0.001)


lock, again = threading.Lock(), threading.RLock()
shared = multiprocessing.get_context("fork").Lock()
for _ in range(1000):
    with lock:
        pass
    with again:
        again.acquire()
        again.release()
    shared.acquire()
    shared.release()

for _ in range(2):
    held(lock)
    lock.acquire()  #: 2 threading.Lock.acquire detail=held by thread ... at /cwd/program.py:24 hold
    lock.release()
held(lock)
with lock:  #: threading.Lock.__enter__ detail=held by thread ... at /cwd/program.py:24 hold
    pass
held(lock)
lock.acquire_lock()  #: threading.Lock.acquire_lock detail=held by thread ... at /cwd/program.py:24 hold
lock.release()
held(lock)
assert not lock.acquire(timeout=0.05)  #: threading.Lock.acquire detail=held by thread ... at /cwd/program.py:24 hold
held(again)
again.acquire()  #: threading.RLock.acquire detail=held by thread ... at /cwd/program.py:24 hold
again.release()
held(again)
with again:  #: threading.RLock.__enter__ detail=held by thread ... at /cwd/program.py:24 hold
    pass
held(shared)
shared.acquire()  #: multiprocessing.SemLock.acquire
shared.release()
held(shared)
with shared:  #: within multiprocessing.SemLock.__enter__
    pass

condition = threading.Condition()


def tell():
    with condition:
        condition.notify()
        time.sleep(LONG_S)


with condition:
    later(tell)
    #: threading.Condition.wait
    #: within threading.RLock._acquire_restore detail=held by thread ... at /cwd/program.py:77 tell
    condition.wait()
places = threading.Semaphore(0)
later(places.release)
places.acquire()  #: threading.Semaphore.acquire
sign = threading.Event()
later(sign.set)
sign.wait()  #: threading.Event.wait & within threading.Condition.wait sync & within threading.Lock.acquire sync
gate = threading.Barrier(2)
later(gate.wait)
gate.wait()  #: threading.Barrier.wait
thread = later(int)
thread.join()  #: threading.Thread.join
work = queue.Queue(1)
later(work.put, "task")
work.get()  #: queue.Queue.get & within threading.Condition.wait idle & within threading.Lock.acquire idle
later(work.task_done)
work.join()  #: queue.Queue.join
work.put("task")
later(work.get)
work.put("task")  #: queue.Queue.put
simple = queue.SimpleQueue()
for _ in range(2):
    later(simple.put, "task")
    simple.get()  #: 2 queue.SimpleQueue.get
with multiprocessing.get_context("fork").Pool(1) as pool:
    pool.map(time.sleep, [LONG_S])  #: within multiprocessing.Pool.wait process & within threading.Event.wait process
    list(pool.imap(time.sleep, [LONG_S]))  #: multiprocessing.Pool.next & within threading.Condition.wait process
threading.Thread(target=time.sleep, args=(0.05,)).start()
#: nowhere threading._shutdown
