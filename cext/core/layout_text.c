#include "core/layout_text.h"

#include <string.h>

#include "core/fields.h"

static void put_fields(struct xml_text *text, const char *before, const struct field *fields)
{
    for (; fields && fields->name; fields++) {
        xml_put(text, before);
        xml_put(text, "<field name=\"");
        xml_put(text, fields->name);
        xml_put(text, "\" type=\"");
        xml_put(text, fields->type);
        xml_put_number(text, "\" offset=\"", fields->offset);
        xml_put(text, "\" title=\"");
        xml_put(text, fields->title);
        xml_put(text, "\"/>\n");
    }
}

/* The end of a record with these fields. */
static unsigned end_of(const struct field *fields)
{
    while (fields[1].name)
        fields++;
    return fields->offset + (strcmp(fields->type + 1, "64") == 0 ? 8 : 4);
}

static void put_block(struct xml_text *text, const struct field *fields)
{
    xml_put_number(text, "    <block bytes=\"", end_of(fields));
    xml_put(text, "\">\n");
    put_fields(text, "      ", fields);
    xml_put(text, "    </block>\n");
}

/* The table of calls in progress, after a thread's own fields. */
static void put_table(struct xml_text *text, const struct data_type *threads)
{
    unsigned begin = end_of(threads->fields), entry = end_of(open_call_fields);
    xml_put_number(text, "    <table offset=\"", begin);
    xml_put_number(text, "\" record_bytes=\"", entry);
    xml_put_number(text, "\" records=\"", (threads->record_bytes - begin) / entry);
    xml_put(text, "\">\n");
    put_fields(text, "      ", open_call_fields);
    xml_put(text, "    </table>\n");
}

static void put_type(struct xml_text *text, const struct data_type *type)
{
    const struct field *block = type == &data_types[DATA_EVENTS]       ? block_head_fields
                                : type == &data_types[DATA_COMPRESSED] ? compressed_fields
                                                                       : NULL;
    xml_put(text, "  <data name=\"");
    xml_put(text, type->name);
    xml_put_number(text, "\" record_bytes=\"", type->record_bytes);
    xml_put_number(text, "\" head_bytes=\"", type->head_bytes);
    xml_put_number(text, "\" block_bytes=\"", type->block_bytes);
    xml_put(text, type->fields || block ? "\">\n" : "\"/>\n");
    put_fields(text, "    ", type->fields);
    if (block)
        put_block(text, block);
    if (type == &data_types[DATA_THREADS])
        put_table(text, type);
    if (type->fields || block)
        xml_put(text, "  </data>\n");
}

void layout_write(struct xml_text *text)
{
    xml_put(text, "  <head>\n");
    put_fields(text, "    ", file_head_fields);
    xml_put_number(text, "  </head>\n  <control offset=\"", end_of(file_head_fields));
    xml_put(text, "\">\n");
    put_fields(text, "    ", control_fields);
    xml_put(text, "  </control>\n");
    for (const struct data_type *type = data_types; type->name; type++)
        put_type(text, type);
}
