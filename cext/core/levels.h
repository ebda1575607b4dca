/* What is done at a call, besides making it, by the number of its intrinsic: timed, or counted, or nothing. The governor
   lowers what costs more than it may. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/fields.h"

#define LEVELS(X) X(time) X(count) X(off)
#define NUMBER_OF_LEVEL(name) LEVEL_##name,
#define WORD_OF_LEVEL(name) #name,
enum level { LEVELS(NUMBER_OF_LEVEL) };

enum { COUNTED_NUMBERS = 4096 }; /* what is numbered higher is always timed */

/* Another recording begins, or that of a child: nothing is counted yet, and the governor looks anew. */
void levels_begin(void);

/* Count a call of `number` in the experiment at `directory`. 0, or the error's number where there is no room. */
int level_count(const char *directory, uint32_t number);

/* Numbers whose calls are transactions: within one nothing is lowered, or its parts would not be alike. */
VISIBLE void transactions_forget(void);
VISIBLE void transaction_add(uint32_t number);
VISIBLE bool is_transaction(uint32_t number);

/* Is it a transaction, or what the program told of? Sampling leaves these out nowhere. */
VISIBLE void told_by_program(uint32_t number);
VISIBLE bool is_told_by_program(uint32_t number);

/* What the governor is told: parts in a million of the CPU time that recording may take, what a timed and what a counted
   call cost, and how a number is lowered; that is false for those that cannot be. */
struct governor_settings {
    uint64_t budget_ppm, timed_ns, counted_ns;
    int (*lower)(uint32_t number, enum level level);
};
VISIBLE void governor_begin(const struct governor_settings *settings);

/* A call of `number` was timed. */
VISIBLE void governor_note(uint32_t number);

/* The process has used `cpu_ns` so far: lower what has to be, and tell each with the share that its calls took. */
void governor_look(uint64_t cpu_ns, void (*tell)(uint32_t number, enum level level, double share));
