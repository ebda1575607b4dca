#define _GNU_SOURCE
#include "core/import_table.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "core/loaded_object.h"

/* --- finding */

struct wanted {
    uintptr_t within;
    struct loaded_object object;
};

static int look_at_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct wanted *wanted = data;
    (void)size;
    object_read(&wanted->object, info);
    return is_in(wanted->object.all, wanted->within);
}

struct search {
    struct import *const *imports;
    const struct loaded_object *object;
};

static struct import *import_named(struct import *const imports[], const char *name)
{
    while (*imports && strcmp((*imports)->name, name) != 0)
        imports++;
    return *imports;
}

static void keep_slot(void *data, const struct import_place *place)
{
    const struct search *search = data;
    struct import *import = place->foreign ? import_named(search->imports, place->name) : NULL;
    if (!import || import->count == IMPORT_SLOTS)
        return;
    void *before = __atomic_load_n(place->address, __ATOMIC_ACQUIRE);
    import->slots[import->count++] = (struct import_slot){place->address, before, place->read_only};
    if (!is_in(search->object->all, (uintptr_t)before)) /* else it leads to the loader, which would write there */
        import->real = before;
}

const char *imports_find(struct import *const imports[], const void *within)
{
    struct wanted wanted = {.within = (uintptr_t)within};
    for (struct import *const *each = imports; *each; each++)
        **each = (struct import){.name = (*each)->name};
    if (!dl_iterate_phdr(look_at_object, &wanted) || !wanted.object.dynamic)
        return "the loaded object has no import table";
    if (!wanted.object.symbols)
        return "the import table of the loaded object is unknown";
    object_imports(&wanted.object, false, keep_slot, &(struct search){imports, &wanted.object});
    return NULL;
}

/* --- exchanging */

static bool exchange(const struct import_slot *slot, void *to)
{
    return slot_exchange(slot->address, slot->read_only, to);
}

bool import_put(struct import *import, void *to)
{
    import->to = to;
    for (unsigned index = 0; index < import->count; index++)
        if (!exchange(&import->slots[index], to)) {
            import_restore(import);
            return false;
        }
    return true;
}

static bool restore(const struct import_slot *slot, const void *ours)
{
    void *now = __atomic_load_n(slot->address, __ATOMIC_ACQUIRE);
    return now == ours ? exchange(slot, slot->before) : now == slot->before;
}

bool import_restore(struct import *import)
{
    bool restored = true;
    for (unsigned index = 0; index < import->count; index++)
        restored &= restore(&import->slots[index], import->to);
    return restored;
}

/* --- whose they are */

static const void *object_of(const void *function)
{
    Dl_info info;
    return function && dladdr(function, &info) ? info.dli_fbase : NULL;
}

bool function_is_of_the_c_library(const void *function)
{
    return function && object_of(function) == object_of((const void *)qsort);
}
