"""Tasks that are sent to workers, those that a worker runs, by their names, and how a worker waits for them."""

from interpose.library import Intrinsic, alike

NAMED = {"detail": "word", "argument": None, "attribute": "name"}
JOB = {**NAMED, "attribute": "_func_name"}
ACTOR = {**NAMED, "attribute": "actor_name"}
CHANNEL = ("billiard.connection.Connection.", "billiard.connection:_ConnectionBase.")  # celery's multiprocessing
CONSUMER = ("dramatiq.rabbitmq.Consumer.", "dramatiq.brokers.rabbitmq:_RabbitmqConsumer.")
QUEUES = ("kombu.redis.Channel.", "kombu.transport.redis:Channel._")  # how celery's broker Redis is asked
RUN = {"detail": "word", "transaction": "is"}

INTRINSICS = [
    Intrinsic("celery.Task.apply_async", "celery.app.task:Task.apply_async", "net", **NAMED),
    Intrinsic("celery.Task.apply", "celery.app.task:Task.apply", "logic", transaction="is", **NAMED),
    *alike("celery.worker.", "celery.app.trace:", "trace_task_ret fast_trace_task", "logic", headers="2", **RUN),
    Intrinsic("rq.Queue.enqueue_job", "rq.queue:Queue.enqueue_job", "net", **{**JOB, "argument": 0}),
    # Which function it is, is looked up while it runs.
    Intrinsic("rq.Job.perform", "rq.job:Job.perform", "logic", transaction="is", route="_func_name", **JOB),
    Intrinsic("dramatiq.Actor.send", "dramatiq.actor:Actor.send_with_options", "net", **ACTOR),
    Intrinsic("dramatiq.Actor", "dramatiq.actor:Actor.__call__", "logic", transaction="is", **ACTOR),
    *alike(*CONSUMER, "__next__", "idle"),
    *alike(*CHANNEL, "send send_bytes", "process"),
    *alike(*QUEUES, "brpop_start", "idle"),
    *alike(*CHANNEL, "recv recv_bytes recv_bytes_into poll", "idle process"),
]
