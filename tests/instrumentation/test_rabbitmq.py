"""RabbitMQ: who waits for deliveries is idle; who waits for the answer to what was sent is not."""

import json
from collections import Counter

import pytest
from servers import need_server
from tracing import events_of

pytestmark = [pytest.mark.packages, pytest.mark.xdist_group("servers")]


def self_ns(process, thread=1):
    """The self times of one thread's calls, by kind."""
    found = Counter()
    for event in events_of(process):
        if event.thread == thread:
            found[process.intrinsic(event.intrinsic).kind] += event.wall_ns - event.inner_wall_ns
    return found


def waited_s(done, intrinsic):
    """How long the waits for deliveries took, all of which are idle."""
    founder = done.experiment.founder
    found = [event for event in done.events(intrinsic) if event.thread == 1]
    assert {founder.intrinsic(event.intrinsic).kind for event in found} == {"idle"}
    return sum(event.wall_ns for event in found) / 1e9


def need(*packages):
    for package in packages:
        pytest.importorskip(package)
    need_server("rabbitmq")


PIKA = """
import json, os, threading, time
import pika

def connect():
    return pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1"))

consuming = connect()
channel = consuming.channel()
name = f"tests-pika-{os.getpid()}"
channel.queue_declare(name, auto_delete=True)
worked_s = []

def publish():
    connection = connect()
    sending = connection.channel()
    for _ in range(3):
        time.sleep(0.3)
        sending.basic_publish("", name, b"hush")
    connection.close()

def handle(channel, method, properties, body):
    begun = time.monotonic()
    sum(range(2_000_000))
    channel.basic_ack(method.delivery_tag)
    worked_s.append(time.monotonic() - begun)
    if len(worked_s) == 3:
        channel.stop_consuming()

publisher = threading.Thread(target=publish)
begun = time.monotonic()
"""
CONSUMERS = {
    "start_consuming": "channel.basic_consume(name, handle); publisher.start(); channel.start_consuming()",
    "consume": """
publisher.start()
for method, properties, body in channel.consume(name, inactivity_timeout=0.2):
    if method:
        handle(channel, method, properties, body)
    if len(worked_s) == 3:
        break
""",
    "process_data_events": """
channel.basic_consume(name, handle)
publisher.start()
while len(worked_s) < 3:
    consuming.process_data_events(time_limit=0.2)
""",
}


@pytest.mark.parametrize("way", CONSUMERS)
def test_a_consumer_of_pika_is_idle_between_messages(traced, way):
    need("pika")

    done = traced(PIKA + CONSUMERS[way] + "\nprint(json.dumps([time.monotonic() - begun, sum(worked_s)]))").ended_well()
    consuming_s, worked_s = json.loads(done.stdout)
    idle_s = waited_s(done, "pika.Connection.process_data_events")

    assert 0.8 * (consuming_s - worked_s) <= idle_s <= consuming_s - worked_s


ASKS_PIKA = """
import json, os, threading, time
import pika

connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1"))
channel = connection.channel()
requests = channel.queue_declare(f"tests-rpc-{os.getpid()}", auto_delete=True).method.queue
replies = channel.queue_declare("", exclusive=True).method.queue
answered = []
channel.basic_consume(replies, lambda *delivery: answered.append(delivery), auto_ack=True)

def answer(channel, method, properties, body):
    time.sleep(0.3)
    channel.basic_publish("", properties.reply_to, body)
    channel.stop_consuming()

def serve():
    serving = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1")).channel()
    serving.basic_consume(requests, answer, auto_ack=True)
    serving.start_consuming()

threading.Thread(target=serve).start()
begun = time.monotonic()
channel.basic_publish("", requests, b"hush", pika.BasicProperties(reply_to=replies))
while not answered:
    connection.process_data_events(time_limit=None)
print(time.monotonic() - begun)
"""


def test_who_waits_for_an_answer_by_pika_is_not_idle(traced):
    need("pika")

    done = traced(ASKS_PIKA).ended_well()
    took_ns = self_ns(done.experiment.founder)

    assert took_ns["net"] / 1e9 >= 0.3
    assert took_ns["idle"] < took_ns["net"] / 10


KOMBU = """
import json, os, threading, time
import kombu, kombu.mixins

name = f"tests-kombu-{os.getpid()}"
queue = kombu.Queue(name, auto_delete=True)
worked_s = []

def connect():
    return kombu.Connection("amqp://guest:guest@127.0.0.1//")

def publish():
    with connect() as connection:
        producer = connection.Producer()
        for _ in range(3):
            time.sleep(0.3)
            producer.publish("hush", routing_key=name)

def handle(body, message):
    begun = time.monotonic()
    sum(range(2_000_000))
    message.ack()
    worked_s.append(time.monotonic() - begun)

class Worker(kombu.mixins.ConsumerMixin):
    def __init__(self, connection):
        self.connection = connection

    def get_consumers(self, consumer, channel):
        return [consumer(queues=[queue], callbacks=[handle])]

    def on_iteration(self):
        self.should_stop = len(worked_s) == 3

publisher = threading.Thread(target=publish)
with connect() as connection:
    queue(connection.default_channel).declare()
    publisher.start()
    begun = time.monotonic()
"""
DRAINERS = {
    "ConsumerMixin": "    Worker(connection).run()",
    "drain_events": """
    with connection.Consumer(queue, callbacks=[handle]):
        while len(worked_s) < 3:
            connection.drain_events()
""",
}


@pytest.mark.parametrize("way", DRAINERS)
def test_a_consumer_of_kombu_is_idle_between_messages(traced, way):
    need("kombu", "amqp")

    done = traced(KOMBU + DRAINERS[way] + "\nprint(json.dumps([time.monotonic() - begun, sum(worked_s)]))").ended_well()
    consuming_s, worked_s = json.loads(done.stdout)
    idle_s = waited_s(done, "amqp.Connection.drain_events")

    assert 0.7 * (consuming_s - worked_s) <= idle_s <= consuming_s - worked_s


CONFIRMED = {
    "pika": """
import pika
connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1"))
channel = connection.channel()
channel.confirm_delivery()
channel.queue_declare("", exclusive=True)
for _ in range(20):
    channel.basic_publish("", "nobody", b"hush")
connection.close()
""",
    "kombu": """
import kombu
options = {"confirm_publish": True}
with kombu.Connection("amqp://guest:guest@127.0.0.1//", transport_options=options) as connection:
    channel = connection.channel()
    channel.queue_declare("", exclusive=True)
    for _ in range(20):
        connection.Producer(channel).publish("hush", routing_key="nobody")
    channel.basic_get(channel.queue_declare("", exclusive=True).queue)
""",
}


@pytest.mark.parametrize("package", CONFIRMED)
def test_what_is_asked_of_rabbitmq_is_waited_for(traced, package):
    need(package)

    done = traced(CONFIRMED[package]).ended_well()
    names = {done.experiment.founder.intrinsic(event.intrinsic).name for event in done.events()}

    assert "socket.socket.recv" in names
    assert names.isdisjoint({"amqp.Connection.drain_events", "pika.Connection.process_data_events"})


SHOP = """
import os, time
import celery, kombu

shop = celery.Celery("shop", broker="amqp://guest:guest@127.0.0.1//", backend="rpc://")
shop.conf.task_default_queue = os.environ["SHOP_QUEUE"]
shop.conf.task_queues = [kombu.Queue(os.environ["SHOP_QUEUE"], auto_delete=True)]

@shop.task(name="shop.pack")
def pack(seconds):
    time.sleep(seconds)
"""
ORDERS = """
import os, signal, subprocess, sys, time
os.environ["SHOP_QUEUE"] = f"tests-{os.getpid()}"
words = f"-m celery -A shop worker --pool {sys.argv[1]} --concurrency 1 --loglevel CRITICAL --without-mingle"
worker = subprocess.Popen([sys.executable, *words.split()], stdout=subprocess.DEVNULL)
from shop import pack
pack.delay(0).get(timeout=60)
begun = time.monotonic()
pack.delay(0.5).get(timeout=60)
print(time.monotonic() - begun)
time.sleep(4)
worker.send_signal(signal.SIGTERM)
print(worker.wait(60))
"""


@pytest.mark.long
@pytest.mark.parametrize("pool", ["prefork", "threads"])
def test_a_worker_of_celery_that_waits_for_rabbitmq_is_idle_and_who_waits_for_its_result_is_not(traced, tmp_path, pool):
    need("celery", "amqp")
    (tmp_path / "shop.py").write_text(SHOP)

    done = traced(ORDERS, pool)
    client, worker = done.experiment.processes[:2]
    asked_s, returned = done.stdout.split()
    worker_ns, client_ns = self_ns(worker), self_ns(client)

    assert (done.returncode, returned) == (0, "0"), done.stderr
    assert worker_ns["idle"] >= 3e9
    assert worker_ns["net"] < worker_ns["idle"] / 10
    assert client_ns["idle"] == 0
    assert client_ns["net"] / 1e9 >= 0.9 * float(asked_s)
