#define _GNU_SOURCE
#include <string.h>

#include "core/interning.h"
#include "program/database_wrappers.h"
#include "program/message_list.h"
#include "program/program_host.h"

/* Kafka, by librdkafka. Its own threads talk to the brokers: what the program calls puts messages into queues, takes them out, and
   waits. */

#define KAFKA_TELLERS(X) \
    X(rd_kafka_topic_name, text, (const void *topic)) \
    X(rd_kafka_err2name, text, (int error)) \
    X(rd_kafka_error_name, text, (const void *error)) \
    X(rd_kafka_last_error, int, (void))
#define KAFKA_TELLER(name, returns, parameters) \
    static void *real_##name; \
    typedef returns type_of_##name parameters;
KAFKA_TELLERS(KAFKA_TELLER)

/* How a message begins. */
struct message {
    int error;
    void *topic;
    int32_t partition;
    void *memory;
    size_t bytes;
};

static text topic_of(const void *topic)
{
    return topic && real_rd_kafka_topic_name ? TELL(rd_kafka_topic_name, topic) : NULL;
}

static uint32_t named(text name)
{
    return name ? string_intern(name, strlen(name)) : failed_if(true);
}

static uint32_t failed_kafka(int error)
{
    return error ? named(real_rd_kafka_err2name ? TELL(rd_kafka_err2name, error) : NULL) : 0;
}

static uint32_t failed_last(bool failed)
{
    return failed ? failed_kafka(real_rd_kafka_last_error ? TELL(rd_kafka_last_error) : 0) : 0;
}

static uint32_t failed_object(const void *error)
{
    return error ? named(real_rd_kafka_error_name ? TELL(rd_kafka_error_name, error) : NULL) : 0;
}

/* That there are no more for now is no error. */
static uint32_t failed_message(const struct message *message)
{
    enum { PARTITION_EOF = -191 };
    return message && message->error != PARTITION_EOF ? failed_kafka(message->error) : 0;
}

/* A call that gives a message has the message's topic. */
#define GIVING_MESSAGE(name, parameters, arguments) \
    WRAPPER(name, struct message *, parameters, arguments, NULL, call.subject = (intptr_t)(result ? topic_of(result->topic) : NULL), \
            (void)0, result && !result->error ? (int64_t)result->bytes : 0, failed_message(result))

PLAIN(rd_kafka_new, void *, (int role, void *settings, char *words, size_t room), (role, settings, words, room), NULL, 0,
      failed_if(!result))
PLAIN(rd_kafka_produce, int,
      (void *topic, int32_t partition, int flags, void *memory, size_t bytes, const void *key, size_t key_bytes, void *own),
      (topic, partition, flags, memory, bytes, key, key_bytes, own), topic_of(topic), result ? 0 : (int64_t)bytes,
      failed_last(result))
PLAIN(rd_kafka_produce_batch, int, (void *topic, int32_t partition, int flags, struct message *messages, int count),
      (topic, partition, flags, messages, count), topic_of(topic), 0, 0)
PLAIN(rd_kafka_produceva, void *, (void *on, const void *values, size_t count), (on, values, count), NULL, 0,
      failed_object(result))
PLAIN(rd_kafka_flush, int, (void *on, int timeout_ms), (on, timeout_ms), NULL, 0, failed_kafka(result))
PLAIN(rd_kafka_subscribe, int, (void *on, const void *topics), (on, topics), NULL, 0, failed_kafka(result))
PLAIN(rd_kafka_commit, int, (void *on, const void *offsets, int later), (on, offsets, later), NULL, 0, failed_kafka(result))
PLAIN(rd_kafka_commit_message, int, (void *on, const struct message *message, int later), (on, message, later),
      message ? topic_of(message->topic) : NULL, 0, failed_kafka(result))
PLAIN(rd_kafka_committed, int, (void *on, void *partitions, int timeout_ms), (on, partitions, timeout_ms), NULL, 0,
      failed_kafka(result))
PLAIN(rd_kafka_metadata, int, (void *on, int all, void *topic, const void **found, int timeout_ms),
      (on, all, topic, found, timeout_ms), topic_of(topic), 0, failed_kafka(result))
PLAIN(rd_kafka_query_watermark_offsets, int,
      (void *on, text topic, int32_t partition, int64_t *low, int64_t *high, int timeout_ms),
      (on, topic, partition, low, high, timeout_ms), NULL, 0, failed_kafka(result))
PLAIN(rd_kafka_consumer_close, int, (void *on), (on), NULL, 0, failed_kafka(result))
PLAIN(rd_kafka_init_transactions, void *, (void *on, int timeout_ms), (on, timeout_ms), NULL, 0, failed_object(result))
PLAIN(rd_kafka_commit_transaction, void *, (void *on, int timeout_ms), (on, timeout_ms), NULL, 0, failed_object(result))
PLAIN(rd_kafka_abort_transaction, void *, (void *on, int timeout_ms), (on, timeout_ms), NULL, 0, failed_object(result))
PLAIN(rd_kafka_poll, int, (void *on, int timeout_ms), (on, timeout_ms), NULL, 0, 0)
PLAIN(rd_kafka_queue_poll, void *, (void *on, int timeout_ms), (on, timeout_ms), NULL, 0, 0)
GIVING_MESSAGE(rd_kafka_consumer_poll, (void *on, int timeout_ms), (on, timeout_ms))
GIVING_MESSAGE(rd_kafka_consume, (void *topic, int32_t partition, int timeout_ms), (topic, partition, timeout_ms))

/* The real function reads as far as the end of the list, and no further. */
#define EIGHT(from) \
    list.words[(from)], list.words[(from) + 1], list.words[(from) + 2], list.words[(from) + 3], list.words[(from) + 4], \
        list.words[(from) + 5], list.words[(from) + 6], list.words[(from) + 7]
#define THIRTY_TWO(from) EIGHT(from), EIGHT((from) + 8), EIGHT((from) + 16), EIGHT((from) + 24)

typedef int type_of_producev(void *on, ...);

static int producev_known(void *on, ...)
{
    type_of_producev *real = (type_of_producev *)databases[DATABASE_rd_kafka_producev].real;
    struct message_list list = {0};
    struct native_call call;
    va_list values;
    va_start(values, on);
    message_list_read(&list, values);
    va_end(values);
    bool begun = BEGIN(rd_kafka_producev, list.topic ? topic_of(list.topic) : list.topic_name);
    int result = list.count <= 32 ? real(on, THIRTY_TWO(0)) : real(on, THIRTY_TWO(0), THIRTY_TWO(32), THIRTY_TWO(64));
    int saved = errno;
    if (begun) {
        call.failed = call.span.thread ? failed_kafka(result) : 0;
        native_end(&call, result ? 0 : (int64_t)list.value_bytes, 0);
    }
    errno = saved;
    return result;
}

#define program_rd_kafka_producev message_list_enter

#define FIND(name, ...) {#name, NULL, &real_##name, true, NULL},
#define CALL(library, name, ...) {#name, (void *)program_##name, &databases[DATABASE_##name].real, true, NULL},

void program_exchange_messages(void)
{
    static const struct native_exchange calls[] = {MESSAGE_CALLS(CALL)}, others[] = {KAFKA_TELLERS(FIND)};
    message_list_known = (void *)producev_known;
    message_list_real = &databases[DATABASE_rd_kafka_producev].real;
    for (unsigned each = 0; each < sizeof others / sizeof *others; each++)
        program_exchange(others[each]);
    for (unsigned each = 0; each < sizeof calls / sizeof *calls; each++)
        if (databases[DATABASE_rd_kafka_new + each].slot.numbers)
            program_exchange(calls[each]);
}
