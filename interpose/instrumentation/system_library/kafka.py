"""Kafka: confluent-kafka, with types in C. Of a message its topic and its length are kept, nothing else.

Its library talks to the brokers on threads of its own: what is called here puts messages into queues, takes them out,
and waits. Waiting for messages is idle, unless somebody waits for the answer to a request meanwhile. What is reported
of messages that were sent is called within `poll` and `flush`.
"""

from interpose.library import Intrinsic, alike

PRODUCER = ("confluent_kafka.Producer.", "confluent_kafka.cimpl:Producer.")
CONSUMER = ("confluent_kafka.Consumer.", "confluent_kafka.cimpl:Consumer.")
ADMIN = ("confluent_kafka.admin.AdminClient.", "confluent_kafka.cimpl:_AdminClientImpl.")
OF_TOPIC = {"detail": "database", "keyword": "topic"}
OF_PARTITION = {"detail": "database", "keyword": "partition", "attribute": "topic"}
RECEIVED = {"detail": "topic", "argument": "result", "bytes": "messages"}

INTRINSICS = [
    Intrinsic("confluent_kafka.Producer", "confluent_kafka.cimpl:Producer.__init__", "db"),
    *alike(*PRODUCER, "produce", "db", bytes="value", **OF_TOPIC),
    *alike(*PRODUCER, "produce_batch list_topics", "db", **OF_TOPIC),
    *alike(*PRODUCER, "poll", "idle db"),
    *alike(*PRODUCER, "flush purge close __exit__", "db"),
    *alike(*PRODUCER, "init_transactions begin_transaction send_offsets_to_transaction abort_transaction", "db"),
    *alike(*PRODUCER, "commit_transaction", "db", transaction="ends"),
    Intrinsic("confluent_kafka.Consumer", "confluent_kafka.cimpl:Consumer.__init__", "db"),
    *alike(*CONSUMER, "poll consume", "idle db", **RECEIVED),
    *alike(*CONSUMER, "commit", "db", detail="topic", keyword="message"),
    *alike(*CONSUMER, "subscribe unsubscribe committed offsets_for_times close __exit__", "db"),
    *alike(*CONSUMER, "list_topics", "db", **OF_TOPIC),
    *alike(*CONSUMER, "get_watermark_offsets seek", "db", **OF_PARTITION),
    Intrinsic("confluent_kafka.admin.AdminClient", "confluent_kafka.cimpl:_AdminClientImpl.__init__", "db"),
    *alike(*ADMIN, "list_topics", "db", **OF_TOPIC),
    *alike(*ADMIN, "create_topics delete_topics create_partitions", "db"),
]
