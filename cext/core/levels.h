/* What is done at a call, besides making it, by the number of its intrinsic: timed, counted, or ignored. The
   governor throttles what exceeds its budget. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/fields.h"

#define LEVELS(X) X(time) X(count) X(off)
#define NUMBER_OF_LEVEL(name) LEVEL_##name,
#define WORD_OF_LEVEL(name) #name,
enum level { LEVELS(NUMBER_OF_LEVEL) };

enum { COUNTED_NUMBERS = 4096 }; /* higher numbers are always timed */

/* Another recording begins, or that of a child: counts are 0, and the governor starts again. */
void levels_begin(void);

/* Count a call of `number` in the experiment at `directory`. 0, or the error's number where there is no room. */
int level_count(const char *directory, uint32_t number);

/* Numbers with calls that are transactions: nothing is throttled within one, or its parts could not be compared. */
VISIBLE void transactions_forget(void);
VISIBLE void transaction_add(uint32_t number);
VISIBLE bool is_transaction(uint32_t number);

/* Whether it is a transaction, or a user event. Sampling never leaves these out. */
VISIBLE void told_by_program(uint32_t number);
VISIBLE bool is_told_by_program(uint32_t number);

/* The governor's data: the share of CPU time that recording may take, in millionths; the costs of a timed and of a
   counted call; and how to throttle a number, which returns false if that is not possible. */
struct governor_settings {
    uint64_t budget_ppm, timed_ns, counted_ns;
    int (*lower)(uint32_t number, enum level level);
};
VISIBLE void governor_begin(const struct governor_settings *settings);

/* A call of `number` was timed. */
VISIBLE void governor_note(uint32_t number);

/* The process has used `cpu_ns` so far: lower what has to be, and tell each with the share that its calls took. */
void governor_look(uint64_t cpu_ns, void (*tell)(uint32_t number, enum level level, double share));
