"""Messages that a worker of dramatiq takes, by a broker in memory."""

import time

import dramatiq
from dramatiq.brokers.stub import StubBroker

broker = StubBroker()
dramatiq.set_broker(broker)


@dramatiq.actor(actor_name="shop.pack", max_retries=0)
def pack(name):
    time.sleep(0.01)


worker = dramatiq.Worker(broker, worker_timeout=100, worker_threads=2)
worker.start()
for _ in range(2):
    pack.send("hush")  #: 2 within dramatiq.Actor.send detail=shop.pack
pack.send_with_options(args=("hush",))  #: dramatiq.Actor.send detail=shop.pack
broker.join(pack.queue_name)
worker.join()
worker.stop()
pack("hush")  #: dramatiq.Actor detail=shop.pack
