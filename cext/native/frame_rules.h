/* How to find the caller's frame from a frame, by the rules that compilers write for each instruction, because exceptions
   need them (https://refspecs.linuxfoundation.org/LSB_5.0.0/LSB-Core-generic/LSB-Core-generic/ehframechpt.html,
   https://dwarfstd.org/doc/DWARF5.pdf, section 6.4). Code without frame pointers has them, too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/loaded_object.h"

/* Where a frame ends: the value of the stack pointer after the return to the caller. */
enum frame_base { BASE_stack, BASE_pointer, BASE_kept }; /* relative to the stack or frame pointer, or saved near the latter */

/* Where the caller's frame pointer is. */
enum kept_pointer { POINTER_same, POINTER_in_frame, POINTER_by_base, POINTER_lost };

struct frame_rule {
    int32_t frame_at;   /* the frame's end, or where that is saved, relative to the base */
    int16_t pointer_at; /* where the caller's frame pointer is saved, relative to the frame's end or base */
    uint8_t base;       /* enum frame_base */
    uint8_t pointer : 2; /* enum kept_pointer */
    uint8_t is_last : 1; /* it has no caller: a thread begins here */
    uint8_t is_known : 1;
};

/* Where an object has its rules. It may be unloaded and replaced at any time, so its memory is copied before it is read. */
struct frame_table {
    struct region all; /* the object */
    const void *head;  /* NULL: it has none */
    bool (*copy)(void *to, const void *from, size_t bytes); /* false if not all of it can be read */
};

enum { LONGEST_DESCRIPTION = 32 * 1024, LONGEST_COMMON = 512 }; /* GCC's own compiler has one of 20,064 bytes */

/* Room for copies of an object's descriptions. */
struct frame_copies {
    uint8_t common[LONGEST_COMMON], description[LONGEST_DESCRIPTION];
};

/* The rule at an instruction of the object; `begin` is set to where its function's code begins. `is_known` is false if the object
   has no rule there, or one that is not understood. */
struct frame_rule frame_rule_at(const struct frame_table *frames, uintptr_t address, struct frame_copies *copies, uintptr_t *begin);
