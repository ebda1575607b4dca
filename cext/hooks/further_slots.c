#include "hooks/further_slots.h"

#include <stdlib.h>
#include <string.h>

#include "core/intern.h"
#include "core/visible.h"
#include "cpython/side_lock.h"

enum { ROOM_FIRST = 1 << 10 };

struct further_slot {
    struct slot slot;
    PyObject *function; /* while it is taken; it may be gone */
    struct further_slot *next, *next_spare;
};

static struct {
    PyObject *function; /* NULL: free */
    struct further_slot *slot;
} *entries; /* by function */
static size_t room, count;
static struct further_slot *first, *last, *spare;

static size_t wanted_place(const PyObject *function)
{
    return (size_t)hash_mix((uintptr_t)function, 0) & (room - 1);
}

static size_t place_of(const PyObject *function)
{
    size_t place = wanted_place(function);
    while (entries[place].function && entries[place].function != function)
        place = (place + 1) & (room - 1);
    return place;
}

static bool make_room(void)
{
    size_t before = room;
    __typeof__(entries) old = entries;
    if (count < room / 2)
        return true;
    __typeof__(entries) larger = calloc(room ? 2 * room : ROOM_FIRST, sizeof *larger);
    if (!larger)
        return false;
    entries = larger;
    room = room ? 2 * room : ROOM_FIRST;
    for (size_t place = 0; place < before; place++)
        if (old[place].function)
            entries[place_of(old[place].function)] = old[place];
    free(old);
    return true;
}

/* Calls may still be on their way through it after it was given back, so no memory is ever freed. */
static struct further_slot *free_slot(void)
{
    struct further_slot *found = spare;
    if (found) {
        spare = found->next_spare;
        return found;
    }
    found = calloc(1, sizeof *found);
    if (found && last)
        last->next = found;
    else if (found)
        first = found;
    last = found ? found : last;
    return found;
}

struct slot *further_slot_take(PyObject *function)
{
    struct further_slot *found = IS_FREE_THREADED || !make_room() ? NULL : free_slot();
    if (!found)
        return NULL;
    size_t place = place_of(function);
    count += !entries[place].function;
    entries[place].function = found->function = function;
    entries[place].slot = found;
    found->slot.taken = 1;
    return &found->slot;
}

/* Entries that were displaced by it move up. */
static void remove_entry(size_t hole)
{
    for (size_t place = (hole + 1) & (room - 1); entries[place].function; place = (place + 1) & (room - 1)) {
        size_t wanted = wanted_place(entries[place].function);
        if (((place - wanted) & (room - 1)) >= ((place - hole) & (room - 1))) {
            entries[hole] = entries[place];
            hole = place;
        }
    }
    entries[hole].function = NULL;
    count--;
}

void further_slot_give_back(struct slot *slot)
{
    struct further_slot *gone = (struct further_slot *)slot;
    size_t place = place_of(gone->function);
    if (entries[place].function && entries[place].slot == gone)
        remove_entry(place);
    slot->taken = 0;
    gone->next_spare = spare;
    spare = gone;
}

struct slot *further_slot_of(PyObject *function)
{
    size_t place = room ? place_of(function) : 0;
    return room && entries[place].function ? &entries[place].slot->slot : NULL;
}

struct slot *further_slot_after(const struct slot *slot)
{
    const struct further_slot *here = (const struct further_slot *)slot;
    struct further_slot *after = here ? here->next : first;
    return after ? &after->slot : NULL;
}
