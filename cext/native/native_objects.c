#define _GNU_SOURCE
#include "native/native_call.h"

#include "native/native_objects.h"

#include <dlfcn.h>
#include <string.h>

#include "core/intern.h"
#include "core/loaded_object.h"
#include "native/left_out_objects.h"
#include "native/native_callers.h"
#include "native/native_host.h"
#include "native/native_wrappers.h"
#include "native/tls_library.h"

/* Besides the native intrinsics: what libraries find functions with, and what the host exchanges itself. */
enum { DLSYM = NATIVE_COUNT, HOSTS, MOST_HOSTS = 144, MOST_WRAPPED = HOSTS + MOST_HOSTS };
enum { SLOTS = 8192, NAMES = 512 };

/* The exchanged slots. */
struct exchanged {
    void **address;
    void *before;
    uint16_t number; /* enum native_number, DLSYM, or of the host's from HOSTS on */
    bool read_only;
};

static struct {
    struct exchanged slots[SLOTS];
    uint32_t count;
    uint16_t by_name[NAMES]; /* numbers, each plus one */
    bool ambiguous[MOST_WRAPPED]; /* there is another function of that name besides the C library's */
    const void *way_of_program[MOST_WRAPPED]; /* its address in all objects, if that is not the function's own */
    void *(*dlsym)(void *, const char *);
    struct region program;
    unsigned long long loaded, unloaded; /* objects, as counted by the loader, at the last look */
    bool on;
} exchange;

static unsigned wrapped_count(void)
{
    return HOSTS + native_host_exchange_count;
}

/* --- what a library finds by a name that it says itself */

static void *wrapped(const char *name, void *found);

/* The result depends on the caller only if no object is named: then the real function must see the caller, and it
   does if it is jumped to. */
static void *native_dlsym(void *object, const char *name)
{
    if (object == RTLD_DEFAULT || object == RTLD_NEXT || !exchange.on)
        return exchange.dlsym(object, name);
    native_host_looked_up();
    return wrapped(name, exchange.dlsym(object, name));
}

/* --- names */

static const char *name_of(unsigned number)
{
    return number >= HOSTS ? native_host_exchanges[number - HOSTS].name : number == DLSYM ? "dlsym" : native_rows[number].name;
}

static void *wrapper_of(unsigned number)
{
    if (number >= HOSTS)
        return native_host_exchanges[number - HOSTS].ours;
    return number == DLSYM ? (void *)native_dlsym : native_rows[number].wrapper;
}

static void *real_of_host(const struct native_exchange *exchange)
{
    return exchange->ours && (!exchange->needs || *exchange->needs) ? *exchange->real : NULL;
}

static void *real_of(unsigned number)
{
    if (number >= HOSTS)
        return real_of_host(&native_host_exchanges[number - HOSTS]);
    if (number == DLSYM)
        return (void *)exchange.dlsym;
    return natives[number].slot.numbers ? natives[number].real : NULL;
}

static unsigned place_of_name(const char *name)
{
    return (unsigned)hash_bytes(name, strlen(name)) % NAMES;
}

/* The host's first: of two with one name it is found. */
static void know_names(void)
{
    memset(exchange.by_name, 0, sizeof exchange.by_name);
    for (unsigned number = wrapped_count(); number-- > 0;) {
        unsigned place = place_of_name(name_of(number));
        while (exchange.by_name[place])
            place = (place + 1) % NAMES;
        exchange.by_name[place] = (uint16_t)(number + 1);
    }
}

/* The number of what is exchanged; wrapped_count() for any other name. */
static unsigned number_of_native(const char *name)
{
    for (unsigned place = place_of_name(name); exchange.by_name[place]; place = (place + 1) % NAMES)
        if (strcmp(name_of(exchange.by_name[place] - 1u), name) == 0)
            return exchange.by_name[place] - 1u;
    return wrapped_count();
}

static void *wrapped(const char *name, void *found)
{
    unsigned number = found ? number_of_native(name) : wrapped_count();
    return number != wrapped_count() && found == real_of(number) ? wrapper_of(number) : found;
}

static int note_program(struct dl_phdr_info *info, size_t size, void *all)
{
    struct loaded_object program;
    (void)size;
    object_read(&program, info);
    *(struct region *)all = program.all;
    return 1; /* the program itself comes first */
}

/* A program at a fixed address that takes a function's address has its own way to it, whose address then stands for
   the function's everywhere; calls of other objects do not use it. Asking the loader takes long: it looks at all symbols. */
static bool is_way_of_program(const void *found)
{
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    return is_in(exchange.program, (uintptr_t)found) && dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol && symbol->st_shndx == SHN_UNDEF;
}

static void find_real(unsigned number)
{
    const char *name = name_of(number);
    void *found = native_is_tls(number) ? NULL : dlsym(RTLD_DEFAULT, name); /* it is found with its object */
    exchange.way_of_program[number] = is_way_of_program(found) ? found : NULL;
    void *real = exchange.way_of_program[number] ? dlsym(RTLD_NEXT, name) : found;
    *(number >= HOSTS ? native_host_exchanges[number - HOSTS].real : &natives[number].real) = real;
}

void native_prepare(void)
{
    native_host_begin();
    left_out_objects_begin();
    know_names();
    dl_iterate_phdr(note_program, &exchange.program);
    for (unsigned number = 0; number < wrapped_count(); number++)
        if (number != DLSYM)
            find_real(number);
    exchange.dlsym = (void *(*)(void *, const char *))dlsym(RTLD_DEFAULT, "dlsym");
    memset(exchange.ambiguous, 0, sizeof exchange.ambiguous);
    exchange.loaded = exchange.unloaded = 0;
    exchange.on = true;
}

bool native_is_on(void)
{
    return exchange.on;
}

/* --- exchanging */

struct look {
    const struct loaded_object *object;
    struct caller *caller;
};

/* Does the slot lead to the function that the wrapper calls? One that has not been used yet leads to the loader, by way of the
   object itself; which function that would find is known where there is one alone. */
static bool leads_to(const struct loaded_object *object, const struct import_place *place, const void *before,
                     unsigned number)
{
    if (before == real_of(number))
        return true;
    bool is_by_program = before && before == exchange.way_of_program[number];
    bool is_unused = place->foreign && !place->in_data && is_in(object->all, (uintptr_t)before);
    return !exchange.ambiguous[number] && (is_by_program || is_unused);
}

static void exchange_place(void *data, const struct import_place *place)
{
    const struct look *look = data;
    unsigned number = number_of_native(place->name);
    if (number == wrapped_count() || exchange.count == SLOTS || !real_of(number))
        return;
    if (native_is_tls(number) && native_host_covers_tls(look->object))
        return;
    void *before = __atomic_load_n(place->address, __ATOMIC_ACQUIRE);
    if (!leads_to(look->object, place, before, number))
        return;
    exchange.slots[exchange.count] = (struct exchanged){place->address, before, (uint16_t)number, place->read_only};
    if (slot_exchange(place->address, place->read_only, wrapper_of(number))) {
        exchange.count++;
        look->caller->slots++;
    }
}

static bool is_as_it_was_left(const struct caller *caller)
{
    const struct exchanged *first = &exchange.slots[caller->first];
    return !caller->slots ||
           __atomic_load_n(first->address, __ATOMIC_ACQUIRE) == wrapper_of(first->number);
}

static void look_at(const struct loaded_object *object)
{
    const struct caller *known = native_caller_of(object);
    if (known && is_as_it_was_left(known))
        return;
    struct caller *caller = native_caller_add(object);
    if (!caller)
        return;
    caller->first = exchange.count;
    if (!object_is_left_out(object))
        object_imports(object, true, exchange_place, &(struct look){object, caller});
}

/* Where the real function is put of those that any one object may have; NULL for the C library's. */
static void **real_of_any(unsigned number)
{
    if (native_is_tls(number))
        return &natives[number].real;
    bool is_of_any = number >= HOSTS && native_host_exchanges[number - HOSTS].is_of_any;
    return is_of_any ? native_host_exchanges[number - HOSTS].real : NULL;
}

static int note_there(struct dl_phdr_info *info, size_t size, void *data)
{
    bool *there = data;
    struct loaded_object object;
    (void)size;
    object_read(&object, info);
    for (unsigned number = 0; number < wrapped_count(); number++)
        there[number] |= real_of_any(number) && is_in(object.all, (uintptr_t)*real_of_any(number));
    return 0;
}

static void forget_real(unsigned number)
{
    *real_of_any(number) = NULL;
    if (native_is_tls(number))
        tls_forget(native_is_openssl(number));
}

/* Those of objects that were unloaded: the same ones may be loaded again elsewhere, or others of that name. */
static void forget_unloaded(void)
{
    bool there[MOST_WRAPPED] = {false};
    dl_iterate_phdr(note_there, there);
    for (unsigned number = 0; number < wrapped_count(); number++) {
        if (real_of_any(number) && *real_of_any(number) && !there[number])
            forget_real(number);
        exchange.ambiguous[number] &= !real_of_any(number);
    }
}

/* A function that any one object may have is real from when it is there on. */
static void note_definition(const struct loaded_object *object, unsigned number)
{
    void *found = object_function(object, name_of(number)), **real = real_of_any(number);
    bool is_known = !native_is_tls(number) || (found && tls_is_of(object, native_is_openssl(number)));
    if (found && is_known && real && !*real)
        *real = found;
    exchange.ambiguous[number] |= found && (!real || *real != found);
}

static int note_definitions(struct dl_phdr_info *info, size_t size, void *nothing)
{
    struct loaded_object object;
    (void)size;
    (void)nothing;
    object_read(&object, info);
    if (object_is_of_the_c_library(&object))
        return 0;
    for (unsigned number = 0; number < wrapped_count(); number++)
        note_definition(&object, number);
    return 0;
}

/* The loader lets nobody unload the object meanwhile. */
static int look_at_loaded(struct dl_phdr_info *info, size_t size, void *nothing)
{
    struct loaded_object object;
    (void)size;
    (void)nothing;
    object_read(&object, info);
    look_at(&object);
    exchange.loaded = info->dlpi_adds;
    exchange.unloaded = info->dlpi_subs;
    return 0;
}

static int is_as_it_was(struct dl_phdr_info *info, size_t size, void *nothing)
{
    (void)size;
    (void)nothing;
    return info->dlpi_adds == exchange.loaded && info->dlpi_subs == exchange.unloaded ? 1 : 2;
}

void native_look(void)
{
    if (!exchange.on || dl_iterate_phdr(is_as_it_was, NULL) == 1)
        return;
    forget_unloaded();
    dl_iterate_phdr(note_definitions, NULL);
    dl_iterate_phdr(look_at_loaded, NULL);
    native_callers_name();
}

/* --- and back */

static int put_back_slot(const struct exchanged *slot)
{
    const void *now = __atomic_load_n(slot->address, __ATOMIC_ACQUIRE);
    if (now == wrapper_of(slot->number))
        return !slot_exchange(slot->address, slot->read_only, slot->before);
    return now != slot->before;
}

static int put_back_in(struct dl_phdr_info *info, size_t size, void *left)
{
    struct loaded_object object;
    (void)size;
    object_read(&object, info);
    const struct caller *caller = native_caller_of(&object);
    for (uint32_t place = 0; caller && place < caller->slots; place++)
        *(int *)left += put_back_slot(&exchange.slots[caller->first + place]);
    return 0;
}

int native_end_all(void)
{
    int left = 0;
    if (!exchange.on)
        return 0;
    exchange.on = false;
    for (unsigned number = 0; number < NATIVE_COUNT; number++)
        natives[number].slot.numbers = 0;
    dl_iterate_phdr(put_back_in, &left);
    native_callers_forget();
    exchange.count = 0;
    return left;
}
