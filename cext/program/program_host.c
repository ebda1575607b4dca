#define _GNU_SOURCE
#include "program/program_host.h"

#include <errno.h>
#include <string.h>

#include "native/native_stacks.h"
#include "native/native_host.h"
#include "native/native_objects.h"

static struct {
    struct region all;
    uint32_t site, looking;
    uint32_t stack, serial; /* of the site alone, and of which recording that is */
} program;

static int note_region(struct dl_phdr_info *info, size_t size, void *nothing)
{
    struct loaded_object object;
    (void)size;
    (void)nothing;
    object_read(&object, info);
    program.all = object.all;
    return 1; /* the program itself comes first */
}

void program_know_itself(const char *path)
{
    uint32_t file = string_intern(path, strlen(path));
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct site site = {.file = file, .function = string_intern(name, strlen(name))};
    dl_iterate_phdr(note_region, NULL);
    program.site = site_add(&site);
}

static uint32_t new_stack(void)
{
    program.stack = program.site ? stack_intern(program.site, 0, 0) : 0;
    __atomic_store_n(&program.serial, recorder.serial, __ATOMIC_RELEASE);
    return program.stack;
}

uint32_t program_stack(void)
{
    bool is_known = __atomic_load_n(&program.serial, __ATOMIC_ACQUIRE) == recorder.serial && program.stack;
    return LIKELY(is_known) ? program.stack : new_stack();
}

enum { MOST_EXCHANGES = 144 };
struct native_exchange native_host_exchanges[MOST_EXCHANGES];
unsigned native_host_exchange_count;

void program_exchange(struct native_exchange exchange)
{
    if (native_host_exchange_count < MOST_EXCHANGES)
        native_host_exchanges[native_host_exchange_count++] = exchange;
}

void native_host_begin(void)
{
    program_exchange_children();
    program_exchange_threads();
    program_exchange_databases();
    program_exchange_messages();
}

/* Unknown ones begin to record; a paused recording continues here. */
struct thread *native_host_thread(void)
{
    struct thread *thread = recording();
    return LIKELY(thread) && !recorder_paused() ? thread : NULL;
}

uint32_t native_host_stack(struct thread *thread, struct native_origin from)
{
    if (is_in(program.all, (uintptr_t)from.caller) && !recorder.native_functions)
        return program_stack();
    uint32_t stack = native_stack_of(thread, from, recorder.native_functions ? 0 : program_stack());
    return stack ? stack : program_stack();
}

void native_host_is_due(struct thread *thread)
{
    thread_look(thread);
}

bool native_host_leaves_out(const struct loaded_object *object)
{
    (void)object;
    return false;
}

bool native_host_is_interpreter(const struct loaded_object *object)
{
    (void)object;
    return false;
}

bool native_host_is_own(const struct loaded_object *object)
{
    return object->all.begin == program.all.begin;
}

bool native_host_covers_tls(const struct loaded_object *object)
{
    (void)object;
    return false;
}

/* One thread at a time looks; what others load meanwhile is seen the next time. */
void native_host_looked_up(void)
{
    int saved = errno;
    if (__atomic_exchange_n(&program.looking, 1, __ATOMIC_ACQUIRE))
        return;
    native_look();
    __atomic_store_n(&program.looking, 0, __ATOMIC_RELEASE);
    errno = saved;
}
