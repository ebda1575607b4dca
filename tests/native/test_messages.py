"""Programs that are not Python and send messages by librdkafka, against the brokers that it plays itself."""

import subprocess

from clients import calls_in
from tracing import environment, events_of, same_library

from interpose.experiments.model.experiment import Experiment

pytestmark = same_library

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


LISTS = r"""
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <string.h>
#define FOUR(name) RD_KAFKA_V_HEADER(name "1", "hush", 4), RD_KAFKA_V_HEADER(name "2", NULL, 0), \
    RD_KAFKA_V_HEADER(name "3", "hush", -1), RD_KAFKA_V_HEADER(name "4", name, 2)
#define SIXTEEN(name) FOUR(name "a"), FOUR(name "b"), FOUR(name "c"), FOUR(name "d")
static char large[2000000];
static int named(void *producer, int number, rd_kafka_headers_t *headers)
{
    return rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("orders"), RD_KAFKA_V_PARTITION(0),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE("hush hush", number),
                             RD_KAFKA_V_KEY("key", 3), RD_KAFKA_V_OPAQUE((void *)7L),
                             RD_KAFKA_V_TIMESTAMP(1234567890123), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
}
static void seen(const rd_kafka_message_t *message)
{
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t bytes;
    rd_kafka_timestamp_type_t type;
    long stamp = (long)rd_kafka_message_timestamp(message, &type);
    printf("%.*s %.*s %d:", (int)message->key_len, (char *)message->key, (int)message->len, (char *)message->payload,
           stamp == 1234567890123);
    if (!rd_kafka_message_headers(message, &headers))
        for (size_t each = 0; !rd_kafka_header_get_all(headers, each, &name, &value, &bytes); each++)
            printf(" %s=%.*s", name, (int)bytes, value ? (char *)value : "");
    printf("\n");
}
static void delivered(rd_kafka_t *producer, const rd_kafka_message_t *message, void *opaque)
{
    printf("delivered %d %ld\n", message->err, (long)message->_private);
}
int main(void)
{
    char why[200], servers[200];
    rd_kafka_conf_t *settings = rd_kafka_conf_new();
    rd_kafka_conf_set(settings, "test.mock.num.brokers", "1", 0, 0);
    rd_kafka_conf_set_dr_msg_cb(settings, delivered);
    rd_kafka_t *producer = rd_kafka_new(RD_KAFKA_PRODUCER, settings, why, sizeof why);
    rd_kafka_topic_t *bills = rd_kafka_topic_new(producer, "bills", NULL);
    for (int number = 1; number < 4; number++) {
        rd_kafka_headers_t *headers = rd_kafka_headers_new(2);
        rd_kafka_header_add(headers, "who", -1, "hush", -1);
        printf("%d\n", named(producer, number, headers));
    }
    printf("%d\n", rd_kafka_producev(producer, RD_KAFKA_V_RKT(bills), RD_KAFKA_V_PARTITION(0),
                                     RD_KAFKA_V_VALUE("hush", 4), SIXTEEN("x"), RD_KAFKA_V_END));
    printf("%d\n", rd_kafka_producev(producer, RD_KAFKA_V_RKT(bills), RD_KAFKA_V_PARTITION(0),
                                     RD_KAFKA_V_VALUE("hushed", 6), SIXTEEN("x"), SIXTEEN("y"), SIXTEEN("z"),
                                     RD_KAFKA_V_END));
    printf("%d\n", rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("orders"), RD_KAFKA_V_VALUE(large, sizeof large),
                                     RD_KAFKA_V_END));
    printf("%d\n", rd_kafka_producev(producer, RD_KAFKA_V_VALUE("hush", 4), RD_KAFKA_V_END));
    printf("%d\n", rd_kafka_producev(producer, RD_KAFKA_V_END));
    printf("%d\n", rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("orders"), 4711, 0.5, RD_KAFKA_V_END));
    rd_kafka_headers_t *mixed = rd_kafka_headers_new(2);
    printf("%d\n", rd_kafka_producev(producer, RD_KAFKA_V_TOPIC("orders"), RD_KAFKA_V_HEADER("who", "hush", 4),
                                     RD_KAFKA_V_HEADERS(mixed), RD_KAFKA_V_END));
    rd_kafka_flush(producer, 20000);
    const rd_kafka_metadata_t *found;
    rd_kafka_metadata(producer, 1, NULL, &found, 20000);
    snprintf(servers, sizeof servers, "%s:%d", found->brokers[0].host, found->brokers[0].port);
    settings = rd_kafka_conf_new();
    rd_kafka_conf_set(settings, "bootstrap.servers", servers, 0, 0);
    rd_kafka_conf_set(settings, "group.id", "readers", 0, 0);
    rd_kafka_t *consumer = rd_kafka_new(RD_KAFKA_CONSUMER, settings, why, sizeof why);
    const char *topics[] = {"orders", "bills"};
    for (int topic = 0; topic < 2; topic++) {
        rd_kafka_topic_partition_list_t *wanted = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(wanted, topics[topic], 0)->offset = 0;
        rd_kafka_assign(consumer, wanted);
        for (int got = 0, tries = 0; got < (topic ? 2 : 3) && tries < 600; tries++) {
            rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 100);
            if (message && !message->err && ++got)
                seen(message);
        }
    }
    return 0;
}
"""


def test_messages_given_as_lists_arrive_unchanged_and_have_their_topic_and_bytes(interpose, client, work):
    command = client(LISTS, "-lrdkafka")
    plain = subprocess.run([command], cwd=work, env=environment(), capture_output=True, text=True)
    done = interpose("run", command)
    sent = [call for call in calls_in(work) if call[0] == "rd_kafka_producev"]

    assert (plain.returncode, done.returncode) == (0, 0), done.stderr
    assert len(plain.stdout.splitlines()) == 10 + 5 + 5
    assert sorted(done.stdout.splitlines()) == sorted(plain.stdout.splitlines())  # topics are delivered in any order
    # A list of more than thirty headers passes through, and so does one with a tag that nobody knows.
    assert [call[1:] for call in sent] == [
        *[("orders", number, "") for number in (1, 2, 3)],
        ("bills", 4, ""),
        ("orders", 0, "MSG_SIZE_TOO_LARGE"),
        *[("", 0, "_INVALID_ARG")] * 2,
        ("orders", 0, "_CONFLICT"),
    ]
    files = [path for path in (work / "test.1.er").rglob("*") if path.is_file()]
    assert not [path for path in files if b"hush" in path.read_bytes()]
