/* What is known of return addresses. */
#pragma once

#include <stdint.h>

#include "core/threads.h"
#include "native/frame_rules.h"

struct known_return {
    struct frame_rule rule; /* of the function's frame */
    uint32_t site;          /* of the function; 0 if it is not shown */
    uint32_t is_interpreter;
};

/* What is known of that address. The first time, it is looked up in the object's file; that time counts as overhead. */
struct known_return native_return_to(struct thread *thread, uintptr_t address);
