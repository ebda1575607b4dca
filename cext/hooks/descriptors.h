/* What each descriptor refers to: a file, a terminal, a socket, a pipe; and its name. The kernel says so at the
   first use of a descriptor (two or three system calls, cost of recording). The data is dropped when the program closes
   the descriptor or opens another in its place. All of it runs with the interpreter lock held; in free-threaded CPython
   without, where the data for a call is one word, which is read and written as a whole. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/visible.h"

enum { DESCRIPTORS_KNOWN = 8192 };

/* `inherited`: a pipe that the process has had from its start or its fork, so its other end is another's. */
/* `process`: it becomes readable when a process ends (pidfd_open(2)), or when the program behind a pseudo-terminal writes
   (the terminal's master). */
enum role { ROLE_NONE, ROLE_CLIENT, ROLE_CONNECTION, ROLE_LISTENER, ROLE_INHERITED, ROLE_PROCESS };
/* `for_work`: sent or received within a wait for work (BLPOP, a subscription), so what comes next is work, not an answer. */
enum last { LAST_NOTHING, LAST_SENT, LAST_RECEIVED, LAST_FOR_WORK };

/* `local`: a socket of Unix's family, whose peer is on this machine. */
enum known { KNOWN_NOT, KNOWN, KNOWN_LOCAL };

enum { WATCHERS = 2 };

/* What the process has been up to now: one that never waited for a listener, one that did, or one that also got a request. */
enum service { SERVICE_NONE, SERVICE_OFFERED, SERVICE_USED };

#define OTHER_END_ELSEWHERE UINT16_MAX /* only in other processes */

struct descriptor {
    _Alignas(8) uint32_t name; /* a number in strings; with the next four it is one word */
    uint8_t known; /* enum known */
    uint8_t kind; /* file, screen, net or process (pipes, pseudo-terminals' masters) */
    uint8_t role, last;
    uint32_t watchers[WATCHERS]; /* the objects that wait for it, as watcher_of gives them, or 0 */
    uint32_t answers;            /* of a client: how many answers servers here had given when it received something */
    uint16_t other_end;          /* of a pipe that was made here: the number of its other end, plus one, or elsewhere */
    uint8_t used_as;             /* of a client: enum service of the process when it was used last */
};

typedef uint64_t __attribute__((may_alias)) descriptor_word;

extern struct descriptor descriptors[DESCRIPTORS_KNOWN];
extern int descriptors_end; /* above the highest one that was ever known */
extern int watched_end;     /* and that anything ever waited for */
/* Who looks for answers that are due passes over these: servers' connections that wait for the next request, and descriptors that nothing
   waits for. None in free-threaded CPython, where it might change while it is noted. */
extern bool passed_over[DESCRIPTORS_KNOWN];
extern bool networks_known; /* any of them is a socket */

#define NO_LISTENER (-1)
extern int listener; /* the last one that this process waited for; not one that only its parent waited for */
extern uint8_t service; /* enum service; not what only its parent was */

uint32_t intern_literal(const char *text);

void first_use(struct descriptor *known, int number);

/* The data of a descriptor; NULL if the number is invalid or too high to be kept. */
static inline struct descriptor *descriptor_known(int number)
{
    if (number < 0 || number >= DESCRIPTORS_KNOWN)
        return NULL;
    struct descriptor *known = &descriptors[number];
    if (UNLIKELY(!__atomic_load_n(&known->known, __ATOMIC_ACQUIRE)))
        first_use(known, number);
    return known;
}

/* As it is now: a copy, for other threads may change it. */
static inline struct descriptor descriptor_now(const struct descriptor *known)
{
    struct descriptor now;
    *(descriptor_word *)&now = __atomic_load_n((const descriptor_word *)known, __ATOMIC_ACQUIRE);
    for (unsigned watcher = 0; watcher < WATCHERS; watcher++)
        now.watchers[watcher] = __atomic_load_n(&known->watchers[watcher], __ATOMIC_RELAXED);
    now.answers = __atomic_load_n(&known->answers, __ATOMIC_RELAXED);
    now.other_end = __atomic_load_n(&known->other_end, __ATOMIC_RELAXED);
    now.used_as = __atomic_load_n(&known->used_as, __ATOMIC_RELAXED);
    return now;
}

static inline void descriptor_changes(const struct descriptor *place)
{
    bool *passed = &passed_over[place - descriptors];
    if (UNLIKELY(__atomic_load_n(passed, __ATOMIC_RELAXED)))
        __atomic_store_n(passed, false, __ATOMIC_RELAXED);
}

static inline void descriptor_put(struct descriptor *place, const struct descriptor *known)
{
    for (unsigned watcher = 0; watcher < WATCHERS; watcher++)
        __atomic_store_n(&place->watchers[watcher], known->watchers[watcher], __ATOMIC_RELAXED);
    __atomic_store_n(&place->answers, known->answers, __ATOMIC_RELAXED);
    __atomic_store_n(&place->other_end, known->other_end, __ATOMIC_RELAXED);
    __atomic_store_n(&place->used_as, known->used_as, __ATOMIC_RELAXED);
    __atomic_store_n((descriptor_word *)place, *(const descriptor_word *)known, __ATOMIC_RELEASE);
    descriptor_changes(place);
}

/* The same without keeping it, if our interpreter's lock is not held: a copy of the data, or the kernel is asked
   each time. `known` is 0 for an invalid descriptor. */
struct descriptor descriptor_look(int number);

/* Write its path, as the kernel has it now, without an end; returns the length, or 0 if it has none or there is not
   room for it. */
size_t descriptor_path(int number, char *path, size_t room);

void forget_descriptors(void);

void descriptor_forget(int number);

/* A socket is a client's, with the other end at that address: the name that it has from now on, and the result; 0 if the address
   has none. */
uint32_t descriptor_connects(int number, const struct sockaddr_storage *address, socklen_t bytes);

/* When a process or a forked child begins: which of its descriptors are inherited pipes. A few system calls. */
VISIBLE void descriptors_inherited(void);

/* Its type is known without asking the kernel. */
void descriptor_set(int number, struct descriptor known);

/* The two ends of a pipe that the program has made; the kernel is asked for the rest at their first use. */
void descriptors_are_ends(int one, int other);

/* When a wait for it begins: note if its other end, a pipe's, and all duplicates of that are only in other processes by now. */
void look_for_other_end(int number, struct descriptor known);

/* Is it the descriptor of a process, the master of a pseudo-terminal, or a pipe whose other end was only in other processes when it was
   looked for? */
bool is_of_child(struct descriptor known);
