#include <stddef.h>

#include "interpose_collector.h"

static void collect(struct interpose_area *area)
{
    area->module = "ORDERS";
    area->section = "SAVE";
    area->statement = area->line;
    area->transaction = "PAY";
}

const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "naming", .collect = collect);
