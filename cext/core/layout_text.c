#include "core/layout_text.h"

#include <string.h>

#include "core/fields.h"

/* Each start of a recording writes four hundred fields, and snprintf would take several times as long. */
struct text {
    char *at, *end;
};

static void put(struct text *text, const char *words)
{
    size_t bytes = strlen(words), room = (size_t)(text->end - text->at);
    bytes = bytes < room ? bytes : room;
    memcpy(text->at, words, bytes);
    text->at += bytes;
}

static void put_number(struct text *text, const char *before, unsigned number)
{
    char digits[12], *first = digits + sizeof digits - 1;
    *first = 0;
    do {
        *--first = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    put(text, before);
    put(text, first);
}

static void put_fields(struct text *text, const char *before, const struct field *fields)
{
    for (; fields && fields->name; fields++) {
        put(text, before);
        put(text, "<field name=\"");
        put(text, fields->name);
        put(text, "\" type=\"");
        put(text, fields->type);
        put_number(text, "\" offset=\"", fields->offset);
        put(text, "\" title=\"");
        put(text, fields->title);
        put(text, "\"/>\n");
    }
}

/* The end of a record with these fields. */
static unsigned end_of(const struct field *fields)
{
    while (fields[1].name)
        fields++;
    return fields->offset + (strcmp(fields->type + 1, "64") == 0 ? 8 : 4);
}

static void put_block(struct text *text, const struct field *fields)
{
    put_number(text, "    <block bytes=\"", end_of(fields));
    put(text, "\">\n");
    put_fields(text, "      ", fields);
    put(text, "    </block>\n");
}

/* The table of calls in progress, after a thread's own fields. */
static void put_table(struct text *text, const struct data_type *threads)
{
    unsigned begin = end_of(threads->fields), entry = end_of(open_call_fields);
    put_number(text, "    <table offset=\"", begin);
    put_number(text, "\" record_bytes=\"", entry);
    put_number(text, "\" records=\"", (threads->record_bytes - begin) / entry);
    put(text, "\">\n");
    put_fields(text, "      ", open_call_fields);
    put(text, "    </table>\n");
}

static void put_type(struct text *text, const struct data_type *type)
{
    const struct field *block = type == &data_types[DATA_EVENTS]       ? block_head_fields
                                : type == &data_types[DATA_COMPRESSED] ? compressed_fields
                                                                       : NULL;
    put(text, "  <data name=\"");
    put(text, type->name);
    put_number(text, "\" record_bytes=\"", type->record_bytes);
    put_number(text, "\" head_bytes=\"", type->head_bytes);
    put_number(text, "\" block_bytes=\"", type->block_bytes);
    put(text, type->fields || block ? "\">\n" : "\"/>\n");
    put_fields(text, "    ", type->fields);
    if (block)
        put_block(text, block);
    if (type == &data_types[DATA_THREADS])
        put_table(text, type);
    if (type->fields || block)
        put(text, "  </data>\n");
}

size_t layout_write(char to[LAYOUT_BYTES])
{
    struct text text = {to, to + LAYOUT_BYTES};
    put(&text, "  <head>\n");
    put_fields(&text, "    ", file_head_fields);
    put_number(&text, "  </head>\n  <control offset=\"", end_of(file_head_fields));
    put(&text, "\">\n");
    put_fields(&text, "    ", control_fields);
    put(&text, "  </control>\n");
    for (const struct data_type *type = data_types; type->name; type++)
        put_type(&text, type);
    return (size_t)(text.at - to);
}
