"""Programs that are not Python and send messages by librdkafka, against the brokers that it plays itself."""

import pytest
from clients import calls_in
from tracing import events_of, has_own_library

from interpose.experiments.model.experiment import Experiment

pytestmark = [
    pytest.mark.any_python,
    pytest.mark.skipif(has_own_library(), reason="programs have another C library than the interpreter"),
]

KAFKA = """
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <string.h>
static char large[2000000];
static rd_kafka_t *made(rd_kafka_type_t role, const char *servers)
{
    char why[200];
    rd_kafka_conf_t *settings = rd_kafka_conf_new();
    rd_kafka_conf_set(settings, servers ? "bootstrap.servers" : "test.mock.num.brokers", servers ? servers : "1", 0, 0);
    rd_kafka_conf_set(settings, "auto.offset.reset", "earliest", 0, 0);
    if (role == RD_KAFKA_CONSUMER)
        rd_kafka_conf_set(settings, "group.id", "readers", 0, 0);
    return rd_kafka_new(role, settings, why, sizeof why);
}
int main(void)
{
    rd_kafka_t *producer = made(RD_KAFKA_PRODUCER, NULL);
    rd_kafka_topic_t *orders = rd_kafka_topic_new(producer, "orders", NULL);
    for (int each = 0; each < 20; each++)
        rd_kafka_produce(orders, 0, RD_KAFKA_MSG_F_COPY, "hush hush", 1 + each % 9, NULL, 0, NULL);
    rd_kafka_produce(orders, 0, RD_KAFKA_MSG_F_COPY, large, sizeof large, NULL, 0, NULL);
    rd_kafka_flush(producer, 20000);
    const rd_kafka_metadata_t *found;
    rd_kafka_metadata(producer, 1, NULL, &found, 20000);
    char servers[200];
    snprintf(servers, sizeof servers, "%s:%d", found->brokers[0].host, found->brokers[0].port);
    rd_kafka_t *consumer = made(RD_KAFKA_CONSUMER, servers);
    rd_kafka_topic_partition_list_t *wanted = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(wanted, "orders", 0)->offset = 0;
    rd_kafka_assign(consumer, wanted);
    int got = 0;
    size_t bytes = 0;
    for (int tries = 0; got < 20 && tries < 600; tries++) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 100);
        if (message && !message->err) {
            got++;
            bytes += message->len;
        }
        if (message)
            rd_kafka_message_destroy(message);
    }
    printf("%d %zu", got, bytes);
    fflush(stdout);
    rd_kafka_commit(consumer, NULL, 0);
    rd_kafka_consumer_close(consumer);
    return 0;
}
"""


def test_messages_are_told_by_topic_and_bytes_and_waiting_for_them_is_idle(interpose, client, work):
    done = interpose("run", client(KAFKA, "-lrdkafka"))

    assert done.returncode == 0, done.stderr
    count, moved = map(int, done.stdout.split())
    calls = calls_in(work)
    sent = [call for call in calls if call[0] == "rd_kafka_produce"]
    (process,) = [each for each in Experiment(str(work / "test.1.er")).processes if not each.lineage]
    polls = [event for event in events_of(process, "librdkafka.rd_kafka_consumer_poll") if event.bytes]
    assert count == 20
    assert sum(call[2] for call in sent) == moved == sum(event.bytes for event in polls)
    assert {call[1] for call in sent} == {process.string(event.detail) for event in polls} == {"orders"}
    assert [call[3] for call in sent] == [*[""] * 20, "MSG_SIZE_TOO_LARGE"]
    assert {process.intrinsic(event.intrinsic).kind for event in polls} == {"idle"}
    assert {"rd_kafka_new", "rd_kafka_flush", "rd_kafka_metadata", "rd_kafka_consumer_close"} <= {
        call[0] for call in calls
    }
    files = [path for path in (work / "test.1.er").rglob("*") if path.is_file()]
    assert not [path for path in files if b"hush hush" in path.read_bytes()]
