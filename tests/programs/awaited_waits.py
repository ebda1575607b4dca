"""Orders that are packed by tasks: what they wait for of each other."""

import asyncio


async def take(lock):
    async with lock:  #: 2 within asyncio.Lock.acquire
        await asyncio.sleep(0.02)  #: 2 asyncio.sleep


async def notify(condition):
    await asyncio.sleep(0.02)  #: asyncio.sleep
    async with condition:  #: within asyncio.Lock.acquire
        condition.notify_all()


async def meet(barrier):
    await barrier.wait()  #: 2 asyncio.Barrier.wait & within asyncio.Condition.wait


async def main():
    lock, condition, barrier = asyncio.Lock(), asyncio.Condition(), asyncio.Barrier(2)
    ready, orders, places = asyncio.Event(), asyncio.Queue(1), asyncio.Semaphore(1)
    loop = asyncio.get_running_loop()
    taking = [asyncio.create_task(take(lock)) for _ in range(2)]
    await asyncio.wait(taking)  #: asyncio.wait
    notifying = asyncio.create_task(notify(condition))
    async with condition:  #: within asyncio.Lock.acquire
        await condition.wait()  #: asyncio.Condition.wait & within asyncio.Lock.acquire
    await notifying
    loop.call_later(0.02, ready.set)
    await ready.wait()  #: asyncio.Event.wait
    await places.acquire()  #: asyncio.Semaphore.acquire
    loop.call_later(0.02, places.release)
    await places.acquire()  #: asyncio.Semaphore.acquire
    await orders.put("first")  #: asyncio.Queue.put
    loop.call_later(0.02, orders.get_nowait)
    await orders.put("second")  #: asyncio.Queue.put
    await orders.get()  #: asyncio.Queue.get idle
    loop.call_later(0.02, orders.task_done)
    loop.call_later(0.02, orders.task_done)
    await orders.join()  #: asyncio.Queue.join
    await asyncio.gather(meet(barrier), meet(barrier))
    child = await asyncio.create_subprocess_exec("true")
    await child.wait()  #: asyncio.subprocess.Process.wait
    child = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    await child.communicate(b"packed")  #: asyncio.subprocess.Process.communicate


asyncio.run(main())
