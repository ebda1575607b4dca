#include "hooks/await_table.h"

#include <stdlib.h>
#include <string.h>

#include "cpython/tasks.h"

static struct {
    struct await *places;
    size_t size, used;
} awaits;

/* How many of those in progress have a scope, by its hash: if there is only one, no other must be searched. */
static uint32_t awaits_by_scope[1024];

uint32_t *those_of_scope(const PyObject *scope)
{
    size_t hash = ((uintptr_t)scope >> 4) * 0x9e3779b97f4a7c15u >> 20;
    return &awaits_by_scope[hash % (sizeof awaits_by_scope / sizeof *awaits_by_scope)];
}

static size_t place_of_await(const PyObject *awaited)
{
    size_t place = ((uintptr_t)awaited >> 4) * 0x9e3779b97f4a7c15u >> 20;
    while (awaits.places[place &= awaits.size - 1].awaited && awaits.places[place].awaited != awaited)
        place++;
    return place;
}

struct await *await_find(const PyObject *awaited)
{
    struct await *found = awaits.size ? &awaits.places[place_of_await(awaited)] : NULL;
    return found && found->awaited ? found : NULL;
}

static bool awaits_grow(void)
{
    struct await *old = awaits.places;
    size_t size = awaits.size, grown = size ? size * 2 : 256;
    struct await *places = calloc(grown, sizeof *places);
    if (!places)
        return false;
    awaits.places = places;
    awaits.size = grown;
    for (size_t place = 0; place < size; place++)
        if (old[place].awaited)
            places[place_of_await(old[place].awaited)] = old[place];
    free(old);
    return true;
}

struct await *await_add(PyObject *awaited)
{
    if (awaits.used * 2 >= awaits.size && !awaits_grow())
        return NULL;
    struct await *await = &awaits.places[place_of_await(awaited)];
    awaits.used++;
    *await = (struct await){.awaited = awaited};
    return await;
}

void await_forget(const PyObject *awaited)
{
    struct await *await = await_find(awaited);
    if (!await)
        return;
    size_t place = (size_t)(await - awaits.places);
    PyObject *told = await->told, *scope = await->scope, *state = await->state;
    if (scope)
        --*those_of_scope(scope);
    answer_ends(&await->answer);
    await->awaited = NULL;
    awaits.used--;
    while (awaits.places[place = (place + 1) & (awaits.size - 1)].awaited) {
        struct await moved = awaits.places[place];
        awaits.places[place].awaited = NULL;
        awaits.places[place_of_await(moved.awaited)] = moved;
    }
    Py_XDECREF(state);
    Py_XDECREF(told); /* which may run anything, and so comes last, with the other */
    Py_XDECREF(scope);
}

void awaits_forget(void)
{
    if (awaits.places) { /* else there was none: leave the memory of a forked child untouched */
        free(awaits.places);
        awaits.places = NULL;
        awaits.size = awaits.used = 0;
        memset(awaits_by_scope, 0, sizeof awaits_by_scope);
    }
    answers_forget_all();
    tasks_forget();
}

struct await *request_with_route(uint32_t thread, uint32_t call)
{
    for (size_t place = 0; place < awaits.size; place++) {
        struct await *each = &awaits.places[place];
        if (each->awaited && each->told && each->slot->route && each->call == call && each->thread == thread)
            return each;
    }
    return NULL;
}

struct await *request_around(const struct await *await, const struct thread *thread)
{
    bool is_servers = await->slot->detail == DETAIL_served && await->slot->attributes;
    struct await *found = NULL;
    if (is_servers || *those_of_scope(await->scope) < 2)
        return NULL;
    for (size_t place = 0; place < awaits.size; place++) {
        struct await *each = &awaits.places[place];
        bool is_another = each->awaited && each != await;
        bool is_around = is_another && each->scope == await->scope && each->call && each->thread == thread->number;
        if (is_around && (!found || each->start_ns < found->start_ns))
            found = each;
    }
    return found;
}
