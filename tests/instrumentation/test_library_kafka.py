"""The system library's client of Kafka: what is recorded of each call, and that nothing is changed."""

import pytest
from exercises import assert_program_is_recorded, source_of

pytestmark = pytest.mark.packages


@pytest.fixture(autouse=True)
def package():
    pytest.importorskip("confluent_kafka")


def test_every_call_of_confluent_kafka_is_recorded_as_it_was(traced):
    assert_program_is_recorded(traced, "kafka")


def test_reports_of_delivery_are_called_within_the_call_that_waits_and_no_message_is_recorded(traced):
    done = traced(source_of("kafka"))
    [flush] = [event for event in done.events("confluent_kafka.Producer.flush") if event.error]
    [stat] = [event for event in done.events("os.stat") if event.parent == flush.call]
    files = [path for path in (done.directory / "test.1.er").rglob("*") if path.is_file()]

    assert done.experiment.founder.string(stat.detail) == "orders"
    assert [path for path in files if b"sesame" in path.read_bytes() and "archive" not in path.parts] == []


# What a program may see of the types, and of what they give.
SEEN = """
import copy, inspect, pickle
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition, cimpl
class Till(Producer):
    def __init__(self, **settings):
        super().__init__({"test.mock.num.brokers": 1, "log_level": 0, **settings})
        self.sent = []
    def produce(self, *words, **named):
        return super().produce(*words, on_delivery=lambda error, message: self.sent.append(len(message)), **named)
class Reader(Consumer):
    def poll(self, *words):
        return super().poll(*words), "read"
class Longer(Message):
    def topic(self):
        raise AssertionError("it was asked")
def tried(call, *words, **named):
    try:
        return repr(call(*words, **named))
    except BaseException as error:
        return type(error), str(error), type(error.__context__)
till = Till()
broker = till.list_topics(timeout=20).brokers[1]
at = {"bootstrap.servers": f"{broker.host}:{broker.port}", "log_level": 0, "group.id": "readers"}
for number in range(40):
    till.produce("orders", b"x" * number, partition=0)
print(till.flush(20), till.sent, len(till), till.poll(0), bool(till))
reader = Reader(at)
reader.assign([TopicPartition("orders", 0, 0)])
read = [reader.poll(20) for turn in range(10)]
print([(type(one), one.topic(), one.value(), one.error(), how) for one, how in read])
print([(type(one), len(one)) for one in reader.consume(30, 20)], reader.poll(0))
print(type(Producer({"log_level": 0})), tried(Producer, 7), tried(Producer, {"nothing": 1}), sep="\\n")
print(tried(Producer.produce, 7), tried(till.poll, "x"), tried(till.commit_transaction), sep="\\n")
print(tried(till.produce), tried(till.produce, 7), tried(till.produce, "orders", 7), sep="\\n")
print(tried(till.produce, "orders", value="x", nothing=1))
print(tried(reader.consume, -1), tried(reader.commit, 7), tried(reader.commit, message=7), sep="\\n")
print(tried(reader.commit, Longer()), tried(reader.seek, None), tried(reader.get_watermark_offsets, 7), sep="\\n")
for kind in (Producer, Consumer, cimpl._AdminClientImpl):
    print(kind, kind.__mro__, type(kind.poll), kind.poll, kind.__init__, kind.__module__, kind.__qualname__)
    print([(name, type(each), each.__doc__, tried(inspect.signature, each)) for name, each in vars(kind).items()])
    print(tried(pickle.dumps, kind), tried(copy.copy, kind), kind.poll == kind.poll, hash(kind.poll) == hash(kind.poll))
error = KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))
print(repr(error), [tried(pickle.dumps, each) for each in (error, till, TopicPartition("orders", 1))])
print(tried(reader.close), tried(reader.poll), tried(reader.poll, 0), tried(till.close), tried(till.flush))
"""


def test_programs_see_the_same_with_the_tracer_and_without(traced):
    off, on = (traced(SEEN, INTERPOSE=value) for value in ("0", "1"))
    sent = on.events("confluent_kafka.Producer.produce")
    polls = [event for event in on.events("confluent_kafka.Consumer.poll") if event.bytes]
    [rest] = [event for event in on.events("confluent_kafka.Consumer.consume") if event.bytes]

    assert (off.returncode, off.stderr, on.returncode, on.stderr) == (0, "", 0, "")
    assert on.stdout == off.stdout
    assert sum(event.bytes for event in sent if not event.error) == sum(range(40))
    assert sum(event.bytes for event in [*polls, rest]) == sum(range(40))


SERVED = """
from confluent_kafka import Consumer
import interpose
reader = Consumer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "group.id": "readers"})
reader.poll(0)
with interpose.transaction("order"):
    reader.poll(0)
"""


def test_a_poll_for_messages_is_idle_unless_somebody_waits_for_the_answer(traced):
    done = traced(SERVED).ended_well()
    process = done.experiment.founder
    polls = done.events("confluent_kafka.Consumer.poll")

    assert [process.intrinsic(event.intrinsic).kind for event in polls] == ["idle", "db"]
