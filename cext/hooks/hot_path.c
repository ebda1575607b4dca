#include "hooks/hot_path.h"

bool begin_left_out(struct call *call)
{
    call->span.thread = NULL;
    return call->slot->effect != EFFECT_none || call->terminal;
}
