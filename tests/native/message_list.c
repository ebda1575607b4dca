/* Calls functions with lists of arguments as rd_kafka_producev has them, through what stands in its place, or, with any word,
   the real one itself, and tells what arrived. */
#include "program/message_list.h"

#include <stdio.h>

enum { END, TOPIC_NAME, TOPIC, PARTITION, VALUE, KEY, OPAQUE, FLAGS, TIMESTAMP, HEADER, HEADERS, UNKNOWN };

static void tell(const char *where, va_list values)
{
    printf("%s:", where);
    for (int tag; (tag = va_arg(values, int)) != END;)
        if (tag == TOPIC_NAME)
            printf(" %d=%s", tag, va_arg(values, const char *));
        else if (tag == PARTITION || tag == FLAGS)
            printf(" %d=%d", tag, va_arg(values, int));
        else if (tag == UNKNOWN) {
            int whole = va_arg(values, int);
            double parts = va_arg(values, double);
            printf(" %d=%d,%g", tag, whole, parts);
        } else
            for (int left = tag == HEADER ? 3 : tag == VALUE || tag == KEY ? 2 : 1; left; left--)
                printf(" %d=%#lx", tag, va_arg(values, unsigned long));
    printf("\n");
}

static int real(void *on, ...)
{
    va_list values;
    va_start(values, on);
    tell(on, values);
    va_end(values);
    return 7;
}

static int known(void *on, ...)
{
    struct message_list list = {0};
    va_list values, again;
    va_start(values, on);
    va_copy(again, values);
    message_list_read(&list, values);
    fprintf(stderr, "%s, %#lx, %zu bytes, %u words\n", list.topic_name ? list.topic_name : "none", (unsigned long)list.topic,
            list.value_bytes, list.count);
    tell(on, again);
    va_end(again);
    va_end(values);
    return 7;
}

#define NAMES HEADER, 0x1111111111l, 0x2222222222l, -1l, HEADER, 0x3333333333l, 0l, 0l
#define EIGHT NAMES, NAMES, NAMES, NAMES

int main(int count, char **words)
{
    (void)words;
    void *first = (void *)real;
    int (*call)(void *on, ...) = count > 1 ? real : (int (*)(void *, ...))message_list_enter;
    message_list_real = &first;
    message_list_known = (void *)known;
    printf("%d\n", call("nothing", END));
    printf("%d\n", call("name", TOPIC_NAME, "orders", END));
    printf("%d\n", call("all", TOPIC, 0xabcdef0123l, PARTITION, -1, FLAGS, 2, VALUE, 0x123456789al, 9l, KEY, 0l, 0l, OPAQUE, 5l,
                        TIMESTAMP, 0x1122334455l, HEADERS, 0x66778899aal, NAMES, END));
    printf("%d\n", call("fits", EIGHT, EIGHT, NAMES, NAMES, NAMES, HEADER, 1l, 2l, 3l, PARTITION, 1, END));
    printf("%d\n", call("longer", EIGHT, EIGHT, NAMES, NAMES, NAMES, HEADER, 1l, 2l, 3l, PARTITION, 1, PARTITION, 1, END));
    printf("%d\n", call("unknown", UNKNOWN, 3, 0.5, UNKNOWN, 4, 0.25, UNKNOWN, 5, 8., UNKNOWN, 6, 16., UNKNOWN, 7, 32., UNKNOWN,
                        8, 64., UNKNOWN, 9, 128., UNKNOWN, 10, 256., UNKNOWN, 11, 512., UNKNOWN, 12, 1024., END));
    printf("%d\n", call("late", VALUE, 1l, 2l, KEY, 3l, 4l, UNKNOWN, 3, 0.5, NAMES, END));
    return 0;
}
