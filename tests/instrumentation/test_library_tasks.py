"""The system library's workers: tasks of celery, and requests that gunicorn's workers serve."""

from collections import Counter

import pytest
from exercises import assert_recorded_as_said, source_of
from servers import need_server
from tracing import events_of

pytestmark = [pytest.mark.packages, pytest.mark.xdist_group("servers")]


def test_tasks_are_recorded_where_they_are_sent_and_where_they_are_run(traced):
    pytest.importorskip("celery")

    done = traced(source_of("celery_tasks"))
    founder = done.experiment.founder
    run = [event for event in done.events() if founder.intrinsic(event.intrinsic).name.startswith("celery.worker.")]

    assert done.returncode == 0, done.stderr
    assert_recorded_as_said(done, "celery_tasks")
    assert [founder.string(event.detail) for event in run] == ["shop.pack"] * 2
    assert all(event.wall_ns >= event.inner_wall_ns >= 10e6 for event in run)


def slept_s(done, intrinsic):
    """What the calls within transactions of that name took, in seconds, by the transaction's name."""
    founder, found = done.experiment.founder, Counter()
    for event in done.events(intrinsic):
        found[founder.string(event.detail)] += event.inner_wall_ns / 1e9
    assert done.returncode == 0, done.stderr
    assert all(founder.intrinsic(event.intrinsic).transaction for event in done.events(intrinsic))
    return found


def test_messages_that_a_worker_of_dramatiq_takes_are_transactions(traced):
    pytest.importorskip("dramatiq")

    done = traced(source_of("dramatiq_actors"))

    assert_recorded_as_said(done, "dramatiq_actors")
    assert slept_s(done, "dramatiq.Actor") == {"shop.pack": pytest.approx(0.04, rel=0.5)}


def test_jobs_that_a_worker_of_rq_runs_are_transactions(traced):
    for package in ("rq", "redis"):
        pytest.importorskip(package)
    need_server("redis")

    done = traced(source_of("rq_jobs"))
    slept = slept_s(done, "rq.Job.perform")

    assert_recorded_as_said(done, "rq_jobs")
    assert slept.pop("time.sleep") == pytest.approx(0.03, rel=0.5)
    assert slept == {"posix.strerror": 0, "os.path.realpath": pytest.approx(0, abs=0.01)}


SHOP = """
import os, time
import celery

shop = celery.Celery("shop", broker="redis://127.0.0.1/5", backend="redis://127.0.0.1/5")
shop.conf.task_default_queue = os.environ["SHOP_QUEUE"]

@shop.task(name="shop.pack")
def pack(name):
    time.sleep(0.05)
    return os.getpid()

@shop.task(name="shop.fail", throws=ValueError)
def fail():
    raise ValueError("it does not fit")
"""
ORDERS = """
import os, signal, subprocess, sys
os.environ["SHOP_QUEUE"] = f"tests-{os.getpid()}"
from shop import fail, pack
words = f"-m celery -A shop worker --pool {sys.argv[1]} --concurrency 2 --loglevel CRITICAL --without-gossip"
worker = subprocess.Popen([sys.executable, *words.split()], stdout=subprocess.DEVNULL)
sent = [pack.delay("hush") for _ in range(8)]
print(len({each.get(timeout=60) for each in sent}))
try:
    fail.delay().get(timeout=60)
except ValueError as error:
    print(error)
worker.send_signal(signal.SIGTERM)
print(worker.wait(60))
"""


@pytest.mark.parametrize(("pool", "workers"), [("prefork", 2), ("threads", 1)])
def test_tasks_are_recorded_in_the_workers_that_run_them(traced, tmp_path, pool, workers):
    for package in ("celery", "redis"):
        pytest.importorskip(package)
    need_server("redis")
    (tmp_path / "shop.py").write_text(SHOP)

    done = traced(ORDERS, pool)
    sent = done.details("celery.Task.apply_async")
    run, ran_in = Counter(), set()
    for process in done.experiment.processes:
        for event in events_of(process):
            name = process.intrinsic(event.intrinsic).name
            if name.startswith("celery.worker."):
                assert process.intrinsic(event.intrinsic).kind == "logic"
                assert event.wall_ns >= event.inner_wall_ns
                run[process.string(event.detail)] += 1
                ran_in.add(process.lineage)

    assert (done.returncode, done.stdout) == (0, f"{workers}\nit does not fit\n0\n"), done.stderr
    assert Counter(sent) == run == {"shop.pack": 8, "shop.fail": 1}
    assert len(ran_in) == workers


def test_requests_are_recorded_in_each_of_gunicorns_workers(traced):
    for package in ("gunicorn", "flask"):
        pytest.importorskip(package)

    done = traced(source_of("gunicorn_workers")).ended_well()
    served = [
        (process.intrinsic(event.intrinsic).kind, process.string(event.detail))
        for process in done.experiment.processes
        for event in events_of(process, "flask.Flask.wsgi_app")
    ]

    assert done.stdout.splitlines()[-1] == "0"
    assert sorted(served) == [("logic", "GET /prices/<name>")] * 10


WAITS_FOR_TASKS = """
import os, signal, subprocess, sys, time
os.environ["SHOP_QUEUE"] = f"tests-idle-{os.getpid()}"
words = "-m celery -A shop worker --pool prefork --concurrency 1 --loglevel CRITICAL"
worker = subprocess.Popen([sys.executable, *words.split()], stdout=subprocess.DEVNULL)
from shop import pack
pack.delay("hush").get(timeout=60)
time.sleep(4)
worker.send_signal(signal.SIGTERM)
print(worker.wait(60))
"""


def test_a_worker_that_waits_for_tasks_of_redis_is_idle(traced, tmp_path):
    pytest.importorskip("celery")
    pytest.importorskip("redis")
    need_server("redis")
    (tmp_path / "shop.py").write_text(SHOP)
    done = traced(WAITS_FOR_TASKS)
    worker = done.experiment.processes[1]
    polls = [event for event in events_of(worker) if worker.intrinsic(event.intrinsic).name == "select.epoll.poll"]
    waited_ns = Counter()
    for event in polls:
        waited_ns[worker.intrinsic(event.intrinsic).kind] += event.wall_ns

    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert waited_ns["idle"] >= 3e9
    assert waited_ns["net"] < waited_ns["idle"] / 10


LISTENS = """
import os, time
import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

broker = RabbitmqBroker(url="amqp://guest:guest@127.0.0.1")
dramatiq.set_broker(broker)
handled = []

@dramatiq.actor(queue_name=f"shop-{os.getpid()}")
def pack(name):
    handled.append(name)

worker = dramatiq.Worker(broker, worker_threads=1)
worker.start()
time.sleep(1)
pack.send("hush")
while not handled:
    time.sleep(0.01)
worker.stop()
for name in (*broker.queues, f"{pack.queue_name}.XQ", f"{pack.queue_name}.DQ"):
    broker.channel.queue_delete(name)
"""


def test_a_worker_of_dramatiq_that_waits_for_rabbitmq_is_idle(traced):
    for package in ("dramatiq", "pika"):
        pytest.importorskip(package)
    need_server("rabbitmq")

    done = traced(LISTENS)
    founder = done.experiment.founder
    waited_ns = Counter()
    for event in done.events("dramatiq.rabbitmq.Consumer.__next__"):
        waited_ns[founder.intrinsic(event.intrinsic).kind] += event.wall_ns
    long = [event for event in done.events("select.epoll.poll") if event.wall_ns > 100e6]

    assert done.returncode == 0, done.stderr
    assert list(waited_ns) == ["idle"]
    assert waited_ns["idle"] > 500e6
    assert {founder.intrinsic(event.intrinsic).kind for event in long} <= {"idle"}
