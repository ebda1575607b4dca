#include <stddef.h>

#include "interpose_collector.h"

static void collect(struct interpose_area *area)
{
    (void)area;
}

const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "idle", .collect = collect);
