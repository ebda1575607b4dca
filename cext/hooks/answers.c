#include "hooks/answers.h"

/* For each thread: how many answers of servers and ends of children are awaited, and how many loops the thread has closed.
   What a closed loop awaited never comes. Threads whose numbers have the same remainder share an entry. */
enum { THREADS_APART = 256 };
static struct answers {
    uint32_t awaited[KIND_COUNT], closed;
} answers_of_threads[THREADS_APART];

static struct answers *answers_of(uint32_t thread)
{
    return &answers_of_threads[thread % THREADS_APART];
}

void answer_begins(struct answer *answer, uint32_t thread, enum kind kind)
{
    struct answers *answers = answers_of(thread);
    uint32_t closed = __atomic_load_n(&answers->closed, __ATOMIC_RELAXED);
    *answer = (struct answer){.thread = thread, .by = 1 + closed, .kind = (uint8_t)kind};
    __atomic_add_fetch(&answers->awaited[kind], 1, __ATOMIC_RELAXED);
}

void answer_ends(struct answer *answer)
{
    struct answers *answers = answers_of(answer->thread);
    if (answer->by == 1 + __atomic_load_n(&answers->closed, __ATOMIC_RELAXED))
        __atomic_sub_fetch(&answers->awaited[answer->kind], 1, __ATOMIC_RELAXED);
    answer->by = 0;
}

/* Where none is awaited nothing is written: a forked child need not copy the memory. */
void answers_forget(uint32_t thread)
{
    struct answers *answers = answers_of(thread);
    uint32_t awaited = 0;
    for (unsigned kind = 0; kind < KIND_COUNT; kind++)
        awaited |= __atomic_load_n(&answers->awaited[kind], __ATOMIC_RELAXED);
    if (!awaited)
        return;
    __atomic_add_fetch(&answers->closed, 1, __ATOMIC_RELAXED);
    for (unsigned kind = 0; kind < KIND_COUNT; kind++)
        __atomic_store_n(&answers->awaited[kind], 0, __ATOMIC_RELAXED);
}

void answers_forget_all(void)
{
    for (uint32_t thread = 0; thread < THREADS_APART; thread++)
        answers_forget(thread);
}

bool answer_is_awaited(uint32_t thread, enum kind kind)
{
    return __atomic_load_n(&answers_of(thread)->awaited[kind], __ATOMIC_RELAXED);
}
