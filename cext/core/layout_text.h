/* How records are packed, as text for log.xml: the elements `head`, `control` and `data`. */
#pragma once

#include "core/visible.h"
#include "core/xml_text.h"

VISIBLE void layout_write(struct xml_text *to);
