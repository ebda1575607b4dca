#include "sampler/task_names.h"

#include <ctype.h>
#include <string.h>

enum {
    TASK_BYTES = 256, /* of an asyncio task: its coroutine is at this offset, and its name after that in all versions */
    TASKS_AT_MOST = 64, /* that run at the same time, of as many loops; and places of such that have run */
    KEY_WORDS = 3, VALUE_WORD = 2, /* of a dictionary: hash, key, value */
    KEYS_BYTES = 64, INDEX_BITS = 16,
};

/* The one that asyncio gives where the program gives none says nothing, and is another for each. */
static bool is_given_by_asyncio(const char *name, size_t bytes)
{
    static const char given[] = "Task-";
    size_t digits = sizeof given - 1;
    if (bytes <= digits || memcmp(name, given, digits) != 0)
        return false;
    while (digits < bytes && isdigit((unsigned char)name[digits]))
        digits++;
    return digits == bytes;
}

/* Whether the task at the address is that of the coroutine; then the name that the program gave it, or 0. */
static bool find_name(struct sampled_process *process, uint64_t address, uint64_t coroutine, uint32_t *number)
{
    uint64_t task[TASK_BYTES / sizeof(uint64_t)];
    char name[TEXT_BYTES];
    size_t place = 0, places = sizeof task / sizeof *task - 1;
    if (!address || !remote_read(process->reached, address, task, sizeof task))
        return false;
    while (place < places && task[place] != coroutine)
        place++;
    size_t bytes = place < places ? codes_text(process, task[place + 1], name) : 0;
    *number = bytes && !is_given_by_asyncio(name, bytes) ? tables_string(&process->tables, name, bytes) : 0;
    return place < places;
}

/* The same of the tasks in asyncio's dictionary, which has one for each loop that runs one. */
static bool find_name_in_dictionary(struct sampled_process *process, uint64_t coroutine, uint32_t *number)
{
    const struct interpreter_layout *layout = &process->layout;
    uint64_t dictionary, keys, entries[TASKS_AT_MOST * KEY_WORDS];
    char head[KEYS_BYTES];
    if (!remote_read(process->reached, layout->running_tasks, &dictionary, sizeof dictionary) || !dictionary ||
        !remote_read(process->reached, dictionary + layout->dictionary_keys, &keys, sizeof keys) ||
        !remote_read(process->reached, keys, head, sizeof head))
        return false;
    uint64_t bits = word_at(head, sizeof head, layout->keys_index_bytes) & 0xff;
    uint64_t count = word_at(head, sizeof head, layout->keys_count);
    if (bits > INDEX_BITS || count > TASKS_AT_MOST)
        return false;
    uint64_t first = keys + layout->keys_index + (1ull << bits);
    bool is_found = false;
    if (count && remote_read(process->reached, first, entries, count * KEY_WORDS * sizeof *entries))
        for (uint64_t index = 0; index < count && !is_found; index++)
            is_found = find_name(process, entries[index * KEY_WORDS + VALUE_WORD], coroutine, number);
    return is_found;
}

static bool find_name_by_program(struct sampled_process *process, uint64_t state, uint64_t coroutine, uint32_t *number)
{
    const struct interpreter_layout *layout = &process->layout;
    uint64_t task;
    if (!layout->thread_task)
        return layout->running_tasks && find_name_in_dictionary(process, coroutine, number);
    return remote_read(process->reached, state + layout->thread_task, &task, sizeof task) &&
           find_name(process, task, coroutine, number);
}

enum { NAMES_AT_MOST = 1 << 16 };

/* Remember the name for later samples. A later coroutine of the same function may get this address. */
static void keep_name(struct numbers *names, uint64_t key, uint32_t number)
{
    if (numbers_find(names, key) == number)
        return;
    if (names->used >= NAMES_AT_MOST)
        numbers_clear(names);
    numbers_keep(names, key, number);
}

uint32_t task_name(struct sampled_process *process, uint64_t state, uint32_t greenlet, const struct found_stack *stack)
{
    uint64_t key = key_of(stack->coroutine, stack->coroutine_function);
    uint32_t number;
    if (!stack->coroutine)
        return greenlet ? stack->outermost_function : 0;
    if (!find_name_by_program(process, state, stack->coroutine, &number)) {
        uint32_t known = numbers_find(&process->task_names, key);
        return known ? known : stack->coroutine_function;
    }
    number = number ? number : stack->coroutine_function;
    keep_name(&process->task_names, key, number);
    return number;
}
