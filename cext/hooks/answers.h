/* What the tasks and greenlets of each thread await in suspended calls: answers of databases and other servers, and ends of children.
   The wait of an event loop meanwhile is not for new work. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kinds.h"

/* An answer of a database or another server (net), or of a child (process). */
struct answer {
    uint32_t thread;
    uint32_t by; /* the loop of the thread that awaits it, from 1; 0: it is not awaited */
    uint8_t kind;
};

/* Note that an answer is awaited on a thread; and that it no longer is. */
void answer_begins(struct answer *answer, uint32_t thread, enum kind kind);

void answer_ends(struct answer *answer);

/* The thread has closed a loop. */
void answers_forget(uint32_t thread);

/* Those of a parent are not the child's. */
void answers_forget_all(void);

/* Does a task or greenlet on this thread await the answer of a database or another server (net), or of a child (process)? */
bool answer_is_awaited(uint32_t thread, enum kind kind);
