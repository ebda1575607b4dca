/* What lies behind each descriptor: a file, a terminal, a socket, a pipe; and its name.

   The kernel says it at the first use of a descriptor (two or three system calls, own cost). It is forgotten when the
   program closes the descriptor or makes another in its place. All of it runs with the interpreter's lock held. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/visible.h"

enum { DESCRIPTORS_KNOWN = 8192 };

enum role { ROLE_NONE, ROLE_CLIENT, ROLE_CONNECTION, ROLE_LISTENER };
enum last { LAST_NOTHING, LAST_SENT, LAST_RECEIVED };

enum { WATCHERS = 2 };

struct descriptor {
    uint32_t name;                /* a number in strings */
    uint32_t watchers[WATCHERS];  /* the objects that wait for it, as watcher_of tells them, or 0 */
    uint32_t answers;             /* of a client: how many answers servers here had given when it received something */
    uint8_t known;
    uint8_t kind; /* file, screen, net or process (pipes) */
    uint8_t role, last;
};

extern struct descriptor descriptors[DESCRIPTORS_KNOWN];
extern int descriptors_end; /* above the highest one that was ever known */
extern int watched_end;     /* and that anything ever waited for */
extern bool networks_known; /* any of them is a socket */

uint32_t intern_literal(const char *text);

void first_use(struct descriptor *known, int number);

/* What is known of a descriptor; NULL for a number that is none, or too high to be kept. */
static inline struct descriptor *descriptor_known(int number)
{
    if (number < 0 || number >= DESCRIPTORS_KNOWN)
        return NULL;
    struct descriptor *known = &descriptors[number];
    if (UNLIKELY(!known->known))
        first_use(known, number);
    return known;
}

/* The same without keeping it, where our interpreter's lock is not held: a copy of what is known, or the kernel is asked each
   time. `known` is 0 for what is no descriptor. */
struct descriptor descriptor_look(int number);

void forget_descriptors(void);

void descriptor_forget(int number);

/* What it is need not be asked of the kernel. */
void descriptor_set(int number, struct descriptor known);
