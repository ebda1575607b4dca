/* The list of arguments of rd_kafka_producev: tags, each with its values, up to an end. It does not tell how many there are:
   a wrapper in C could not pass on a list with a tag that it does not know. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Each argument is one word, in a register or on the stack. More of them, some twenty headers one by one, are not copied. */
enum { MOST_WORDS = 96 };

struct message_list {
    const char *topic_name;
    const void *topic; /* one of these two is NULL, or both are */
    size_t value_bytes;
    unsigned count;
    uint64_t words[MOST_WORDS];
};

/* Copy a list that is known to its end. */
void message_list_read(struct message_list *list, va_list values);

#if defined(__x86_64__) || defined(__aarch64__)
/* In the place of the real function: goes on, with all arguments where they are, to `message_list_known` if a list is known to
   its end and can be copied, else to the real one. */
void message_list_enter(void);
extern void *message_list_known, **message_list_real;
#else
#define message_list_enter NULL
#endif
