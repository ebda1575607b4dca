"""Orders that a worker of celery packs, by a broker in memory."""

import threading
import time

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
