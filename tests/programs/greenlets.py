"""Orders that are packed by greenlets: what they wait for of each other."""

import gevent
import gevent.event
import gevent.lock
import gevent.queue


def later(act, *arguments):
    gevent.spawn_later(0.02, act, *arguments)


gevent.sleep(0.01)  #: gevent.sleep
places = gevent.lock.Semaphore(1)
with places:  #: gevent.lock.Semaphore.__enter__
    later(places.release)
    places.acquire()  #: gevent.lock.Semaphore.acquire
ready = gevent.event.Event()
later(ready.set)
ready.wait()  #: gevent.event.Event.wait
price = gevent.event.AsyncResult()
later(price.set, 5)
assert price.get() == 5  #: gevent.event.AsyncResult.get
orders = gevent.queue.SimpleQueue(1)
orders.put("first")  #: gevent.queue.SimpleQueue.put
later(orders.get)  #: nowhere gevent.queue.SimpleQueue.get idle
orders.put("second")  #: gevent.queue.SimpleQueue.put
assert orders.get() == "second"  #: gevent.queue.SimpleQueue.get idle
orders.put("third")  #: gevent.queue.SimpleQueue.put
assert orders.get(block=False) == "third"  #: gevent.queue.SimpleQueue.get sync
packing = gevent.spawn(int)
packing.join()  #: gevent.Greenlet.join
assert packing.get() == 0  #: gevent.Greenlet.get
gevent.joinall([packing])  #: gevent.joinall
