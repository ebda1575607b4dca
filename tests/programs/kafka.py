"""Orders in Kafka, with confluent-kafka, whose library plays the brokers itself."""

import contextlib
import os

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

QUIET = {"log_level": 0}


def note(error, message):
    os.stat(message.topic())  #: within os.stat error=... detail=orders


producer = Producer({"test.mock.num.brokers": 1, **QUIET})  #: confluent_kafka.Producer
#: confluent_kafka.Producer.list_topics
broker = producer.list_topics(timeout=20).brokers[1]
at = {"bootstrap.servers": f"{broker.host}:{broker.port}", **QUIET}
#: confluent_kafka.Producer.produce detail=orders bytes=6
producer.produce("orders", b"sesame", "key", 0)
#: confluent_kafka.Producer.produce detail=orders bytes=11
producer.produce(topic="orders", partition=0, value="open sesame", headers={"who": "sesame"})
producer.produce("orders", partition=0)  #: confluent_kafka.Producer.produce detail=orders
with contextlib.suppress(KafkaException):
    #: confluent_kafka.Producer.produce detail=orders error=KafkaException
    producer.produce("orders", b"sesame" * 1_000_000)
#: confluent_kafka.Producer.produce_batch detail=orders
assert producer.produce_batch("orders", [{"value": b"sesame"}] * 3, partition=0) == 3
assert producer.flush(20) == 0  #: confluent_kafka.Producer.flush
assert producer.poll(0) == 0  #: confluent_kafka.Producer.poll
producer.purge()  #: confluent_kafka.Producer.purge
producer.list_topics("orders", 20)  #: confluent_kafka.Producer.list_topics detail=orders

#: confluent_kafka.Consumer
consumer = Consumer({"group.id": "readers", "enable.partition.eof": True, **at})
consumer.subscribe(["orders"])  #: confluent_kafka.Consumer.subscribe
consumer.unsubscribe()  #: confluent_kafka.Consumer.unsubscribe
#: confluent_kafka.Consumer.consume
assert consumer.consume(1, 0.01) == []
orders = TopicPartition("orders", 0, 0)
consumer.assign([orders])
first = consumer.poll(20)  #: confluent_kafka.Consumer.poll detail=orders bytes=6
#: confluent_kafka.Consumer.consume detail=orders bytes=29
assert len(consumer.consume(5, 20)) == 5
#: confluent_kafka.Consumer.poll detail=orders
assert consumer.poll(20).error()
#: confluent_kafka.Consumer.poll
assert consumer.poll(0.01) is None
consumer.commit(message=first, asynchronous=False)  #: confluent_kafka.Consumer.commit detail=orders
consumer.commit(first, asynchronous=False)  #: confluent_kafka.Consumer.commit detail=orders
consumer.commit(asynchronous=False)  #: confluent_kafka.Consumer.commit
consumer.committed([orders], 20)  #: confluent_kafka.Consumer.committed
#: confluent_kafka.Consumer.get_watermark_offsets detail=orders
assert consumer.get_watermark_offsets(orders, 20) == (0, 6)
#: confluent_kafka.Consumer.offsets_for_times
consumer.offsets_for_times([orders], 20)
consumer.list_topics("orders", 20)  #: confluent_kafka.Consumer.list_topics detail=orders
consumer.seek(partition=orders)  #: confluent_kafka.Consumer.seek detail=orders

#: confluent_kafka.Producer
till = Producer({"transactional.id": "till", **at})
till.init_transactions(20)  #: confluent_kafka.Producer.init_transactions
till.begin_transaction()  #: confluent_kafka.Producer.begin_transaction
with contextlib.suppress(KafkaException):
    till.begin_transaction()  #: confluent_kafka.Producer.begin_transaction error=KafkaException
#: confluent_kafka.Producer.produce detail=orders bytes=6
till.produce("orders", "sesame", partition=0, on_delivery=note)
#: confluent_kafka.Producer.send_offsets_to_transaction
till.send_offsets_to_transaction([orders], consumer.consumer_group_metadata(), 20)
with contextlib.suppress(FileNotFoundError):
    till.flush(20)  #: confluent_kafka.Producer.flush error=FileNotFoundError errno 2
till.commit_transaction(20)  #: confluent_kafka.Producer.commit_transaction
till.begin_transaction()  #: confluent_kafka.Producer.begin_transaction
till.abort_transaction(20)  #: confluent_kafka.Producer.abort_transaction
till.close()  #: confluent_kafka.Producer.close
with contextlib.suppress(RuntimeError):
    till.poll()  #: confluent_kafka.Producer.poll error=RuntimeError
consumer.close()  #: confluent_kafka.Consumer.close

with Producer(at) as another:  #: confluent_kafka.Producer & confluent_kafka.Producer.__exit__
    another.produce("bills", b"sesame", partition=0)  #: confluent_kafka.Producer.produce detail=bills bytes=6
#: confluent_kafka.Consumer & confluent_kafka.Consumer.__exit__
with Consumer({"group.id": "auditors", **at}) as auditor:
    auditor.assign([orders, TopicPartition("bills", 0, 0)])
    #: confluent_kafka.Consumer.consume bytes=47
    assert {message.topic() for message in auditor.consume(8, 20)} == {"orders", "bills"}

#: within confluent_kafka.admin.AdminClient
admin = AdminClient(at)
admin.list_topics(timeout=20)  #: within confluent_kafka.admin.AdminClient.list_topics
admin.list_topics("orders")  #: within confluent_kafka.admin.AdminClient.list_topics detail=orders
admin.create_topics([NewTopic("bills")])  #: within confluent_kafka.admin.AdminClient.create_topics
admin.delete_topics(["bills"])  #: within confluent_kafka.admin.AdminClient.delete_topics
#: within confluent_kafka.admin.AdminClient.create_partitions
admin.create_partitions([NewPartitions("orders", 8)])
