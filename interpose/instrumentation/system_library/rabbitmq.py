"""RabbitMQ, by pika, and by py-amqp as celery and kombu use it.

A wait for deliveries is idle; a wait for the answer to what the program sent is not. Both happen in the same functions:
who called them, and what was sent last on the connection, makes the difference.
"""

from interpose.library import Intrinsic, alike

AWAITED = {"kinds": "idle", "choice": "deliveries"}
UNANSWERED = {"kinds": "net", "effect": "one_way"}

ANSWERS = [
    Intrinsic("celery.AsyncResult.get", "celery.result:AsyncResult.get", "net"),
    Intrinsic("kombu.Mailbox.collect", "kombu.pidbox:Mailbox._collect", "net"),
]


def _amqp():
    waits, sends = {**AWAITED, "attribute": "sock"}, {**UNANSWERED, "attribute": "connection._transport.sock"}
    heartbeats = {**UNANSWERED, "attribute": "_transport.sock"}
    return [
        Intrinsic("kombu.Hub.poll", "kombu.utils.eventio:_epoll.poll", **AWAITED),
        Intrinsic("amqp.Connection.drain_events", "amqp.transport:_AbstractTransport.read_frame", **waits),
        *alike("amqp.Connection.", "amqp.connection:Connection.", "send_heartbeat", **heartbeats),
        *alike("amqp.Channel.", "amqp.channel:Channel.", "basic_ack basic_reject", **sends),
    ]


def _pika():
    module, path = "pika.adapters.blocking_connection:", "_impl._transport._sock"
    waits, sends = {**AWAITED, "attribute": path}, {**UNANSWERED, "attribute": f"_connection.{path}"}
    return [
        Intrinsic("pika.Connection.process_data_events", f"{module}BlockingConnection._flush_output", **waits),
        *alike("pika.Channel.", f"{module}BlockingChannel.", "basic_ack basic_nack basic_reject", **sends),
    ]


INTRINSICS = [*ANSWERS, *_amqp(), *_pika()]
