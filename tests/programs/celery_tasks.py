"""Orders that a worker of celery packs, by a broker in memory."""

import threading
import time

import billiard
import celery
from celery.contrib.testing.worker import start_worker

shop = celery.Celery("shop", broker="memory://", backend="cache+memory://")


@shop.task(name="shop.pack")
def pack(name):
    time.sleep(0.01)
    return f"{name} is packed"


with start_worker(shop, perform_ping_check=False, pool="solo", loglevel="ERROR"):
    #: celery.Task.apply_async detail=shop.pack & within celery.Task.apply_async detail=shop.pack
    packed = [pack.delay("hush"), pack.apply_async(("hush",))]
    print([each.get(timeout=20) for each in packed], threading.active_count() > 1)
pack.apply(("hush",))  #: celery.Task.apply detail=shop.pack

# How a worker's processes wait for tasks.
reader, writer = billiard.Pipe(duplex=False)
writer.send("hush")  #: billiard.connection.Connection.send
assert reader.poll(10)  #: billiard.connection.Connection.poll
assert reader.recv() == "hush"  #: billiard.connection.Connection.recv
for _ in range(2):
    writer.send_bytes(b"hush")  #: 2 billiard.connection.Connection.send_bytes
assert reader.recv_bytes() == b"hush"  #: billiard.connection.Connection.recv_bytes
reader.recv_bytes_into(bytearray(4))  #: billiard.connection.Connection.recv_bytes_into
