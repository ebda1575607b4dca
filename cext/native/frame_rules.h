/* How to come from a frame to its caller's: what compilers write down for each instruction of a function, because exceptions
   need it (https://refspecs.linuxfoundation.org/LSB_5.0.0/LSB-Core-generic/LSB-Core-generic/ehframechpt.html,
   https://dwarfstd.org/doc/DWARF5.pdf, section 6.4). Code without frame pointers has it too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/loaded_object.h"

/* Where a frame ends: what the stack pointer is in the caller again. */
enum frame_base { BASE_stack, BASE_pointer, BASE_kept }; /* by the stack pointer, the frame pointer, or in memory beside that */

/* Where the caller's frame pointer is. */
enum kept_pointer { POINTER_same, POINTER_in_frame, POINTER_by_base, POINTER_lost };

struct frame_rule {
    int32_t frame_at;   /* the frame's end, or where it is kept, from its base on */
    int16_t pointer_at; /* the caller's frame pointer, from the frame's end or its base on */
    uint8_t base;       /* enum frame_base */
    uint8_t pointer : 2; /* enum kept_pointer */
    uint8_t is_last : 1; /* nothing called it: it is where a thread begins */
    uint8_t is_known : 1;
};

/* Where an object has its rules. Another one may be there meanwhile, so its memory is copied before it is looked at. */
struct frame_table {
    struct region all; /* the object */
    const void *head;  /* NULL: it has none */
    bool (*copy)(void *to, const void *from, size_t bytes); /* false if not all of it can be read */
};

enum { LONGEST_DESCRIPTION = 32 * 1024, LONGEST_COMMON = 512 }; /* the longest in GCC's own compiler has 20,064 bytes */

/* Room for what of an object says it. */
struct frame_copies {
    uint8_t common[LONGEST_COMMON], description[LONGEST_DESCRIPTION];
};

/* The rule at an instruction of the object, and where the code that it belongs to begins. `is_known` is false if the object
   does not say, or says what is not understood here. */
struct frame_rule frame_rule_at(const struct frame_table *frames, uintptr_t address, struct frame_copies *copies, uintptr_t *begin);
