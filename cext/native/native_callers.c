#define _GNU_SOURCE
#include "native/native_callers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/fields.h"
#include "core/recorder.h"
#include "native/left_out_objects.h"
#include "native/native_host.h"

enum { RECENT = 256 };

static struct {
    struct caller all[CALLERS];
    uint32_t count;
    uint32_t changes; /* how often an object left its addresses to others */
    uint64_t recent[RECENT]; /* where calls returned to, with the object's place above it: one word, so never torn */
} callers;

enum { ADDRESS_BITS = 48 };

static uint64_t word_of(uintptr_t address, uint32_t place)
{
    return (uint64_t)(place + 1) << ADDRESS_BITS | (address & ((1ull << ADDRESS_BITS) - 1));
}

static uint32_t find(uintptr_t address)
{
    uint32_t count = __atomic_load_n(&callers.count, __ATOMIC_ACQUIRE), place = 0;
    while (place < count && !is_in(callers.all[place].all, address))
        place++;
    return place < count ? place : CALLERS;
}

static uint32_t find_recent(uintptr_t address)
{
    uint64_t *kept = &callers.recent[(address ^ address >> 8) % RECENT], word = __atomic_load_n(kept, __ATOMIC_ACQUIRE);
    uint32_t place = (uint32_t)(word >> ADDRESS_BITS) - 1;
    if (LIKELY(word && word == word_of(address, place)))
        return place;
    place = find(address);
    if (place < CALLERS)
        __atomic_store_n(kept, word_of(address, place), __ATOMIC_RELEASE);
    return place;
}

const struct caller *native_caller_at(uintptr_t address)
{
    uint32_t place = find_recent(address);
    return place < CALLERS ? &callers.all[place] : NULL;
}

uint64_t native_callers_now(void)
{
    return (uint64_t)recorder.serial << 32 | __atomic_load_n(&callers.changes, __ATOMIC_ACQUIRE);
}

struct caller *native_caller_of(const struct loaded_object *object)
{
    for (uint32_t place = 0; place < callers.count; place++) {
        struct caller *each = &callers.all[place];
        if (each->all.begin == object->all.begin && each->all.end == object->all.end && each->dynamic == object->dynamic)
            return each;
    }
    return NULL;
}

static void forget_recent(void)
{
    __atomic_add_fetch(&callers.changes, 1, __ATOMIC_RELEASE);
    for (unsigned place = 0; place < RECENT; place++)
        __atomic_store_n(&callers.recent[place], 0, __ATOMIC_RELAXED);
}

static void forget_those_in(struct region region)
{
    for (uint32_t place = 0; place < callers.count; place++) {
        struct caller *each = &callers.all[place];
        if (each->all.begin < region.end && region.begin < each->all.end) {
            each->all = (struct region){0, 0};
            each->slots = 0;
            forget_recent();
        }
    }
}

static void note_path(struct caller *caller, const struct loaded_object *object)
{
    size_t bytes = strlen(object->path);
    if (!bytes)
        bytes = (size_t)readlink("/proc/self/exe", caller->path, sizeof caller->path);
    else if (bytes < sizeof caller->path)
        memcpy(caller->path, object->path, bytes);
    if (bytes >= sizeof caller->path)
        caller->path[0] = 0;
}

struct caller *native_caller_add(const struct loaded_object *object)
{
    forget_those_in(object->all);
    if (callers.count == CALLERS)
        return NULL;
    struct caller *caller = &callers.all[callers.count];
    const char *path = *object->path ? object->path : program_invocation_name, *slash = strrchr(path, '/');
    *caller = (struct caller){.all = object->all, .dynamic = object->dynamic, .file_begin = object->file_begin, .frames = object->frames};
    caller->is_own = native_host_is_own(object);
    caller->is_interpreter = native_host_is_interpreter(object);
    caller->is_shown = !object_is_apart(object);
    snprintf(caller->name, sizeof caller->name, "%s", slash ? slash + 1 : path);
    note_path(caller, object);
    __atomic_store_n(&callers.count, callers.count + 1, __ATOMIC_RELEASE);
    return caller;
}

static void give_site(struct caller *caller)
{
    uint32_t name = string_intern(caller->name, strlen(caller->name));
    struct site site = {.file = name, .function = name};
    uint32_t number = name ? site_add(&site) : 0;
    __atomic_store_n(&caller->site, number, __ATOMIC_RELEASE);
    caller->serial = recorder.serial;
}

void native_callers_name(void)
{
    for (uint32_t place = 0; place < callers.count; place++)
        if (callers.all[place].slots && callers.all[place].serial != recorder.serial)
            give_site(&callers.all[place]);
}

void native_callers_forget(void)
{
    forget_recent();
    __atomic_store_n(&callers.count, 0, __ATOMIC_RELEASE);
}
