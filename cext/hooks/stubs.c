#include "hooks/stubs.h"

#include "core/recorder.h"
#include "core/visible.h"
#include "cpython/side_lock.h"
#include "hooks/filtering.h"
#include "hooks/further_slots.h"

/* Nothing new was requested from outside, and the filter lets calls through this slot pass. */
static inline bool is_as_before(const struct slot *slot)
{
    return said_from_outside() == __atomic_load_n(&recorder.heeded, __ATOMIC_RELAXED) &&
           !slot_watched(slot);
}

/* A call of which nothing is recorded goes straight on. */
static bool goes_straight_on(const struct slot *slot)
{
    uint64_t said = said_from_outside();
    if (said == __atomic_load_n(&recorder.heeded, __ATOMIC_RELAXED))
        return slot_watched(slot) && is_left_out_at_once(slot);
    if (!(uint32_t)said || !slot->through)
        return false;
    __atomic_store_n(&recorder.heeded, LOOKED_AWAY, __ATOMIC_RELAXED);
    return true;
}

/* There are thousands of stubs, so each is as small as can be, and jumps to what they share. */
#define STUB(index, name, result, declared, passed) \
    __attribute__((section("interpose_stubs"))) static result stub_##name##_##index declared \
    { \
        return enter_##name(&slots_##name[0x##index], STRIP passed); \
    }
#define SHARED_BY_STUBS(name, result, declared, passed) \
    static __attribute__((noinline)) result look_closer_##name(struct slot *slot, STRIP declared) \
    { \
        if (goes_straight_on(slot)) \
            return ((name##_function)slot->real) passed; \
        return ((name##_body)slot->body)(slot, STRIP passed); \
    } \
    static __attribute__((noinline)) result enter_##name(struct slot *slot, STRIP declared) \
    { \
        if (LIKELY(is_as_before(slot))) \
            return ((name##_body)slot->body)(slot, STRIP passed); \
        return look_closer_##name(slot, STRIP passed); \
    }
#define REFERENCE(index, name, result, declared, passed) (void *)stub_##name##_##index,

#define SIXTEEN(X, digit, ...) \
    X(digit##0, __VA_ARGS__) X(digit##1, __VA_ARGS__) X(digit##2, __VA_ARGS__) X(digit##3, __VA_ARGS__) \
    X(digit##4, __VA_ARGS__) X(digit##5, __VA_ARGS__) X(digit##6, __VA_ARGS__) X(digit##7, __VA_ARGS__) \
    X(digit##8, __VA_ARGS__) X(digit##9, __VA_ARGS__) X(digit##a, __VA_ARGS__) X(digit##b, __VA_ARGS__) \
    X(digit##c, __VA_ARGS__) X(digit##d, __VA_ARGS__) X(digit##e, __VA_ARGS__) X(digit##f, __VA_ARGS__)
#define EACH_STUB(X, ...) \
    SIXTEEN(X, 0, __VA_ARGS__) SIXTEEN(X, 1, __VA_ARGS__) SIXTEEN(X, 2, __VA_ARGS__) SIXTEEN(X, 3, __VA_ARGS__) \
    SIXTEEN(X, 4, __VA_ARGS__) SIXTEEN(X, 5, __VA_ARGS__) SIXTEEN(X, 6, __VA_ARGS__) SIXTEEN(X, 7, __VA_ARGS__) \
    SIXTEEN(X, 8, __VA_ARGS__) SIXTEEN(X, 9, __VA_ARGS__) SIXTEEN(X, a, __VA_ARGS__) SIXTEEN(X, b, __VA_ARGS__) \
    SIXTEEN(X, c, __VA_ARGS__) SIXTEEN(X, d, __VA_ARGS__) SIXTEEN(X, e, __VA_ARGS__) SIXTEEN(X, f, __VA_ARGS__)

#define POOL_OF_STUBS(name, result, declared, passed) \
    static struct slot slots_##name[STUBS]; \
    SHARED_BY_STUBS(name, result, declared, passed) \
    EACH_STUB(STUB, name, result, declared, passed) \
    static void *const stubs_##name[STUBS] = {EACH_STUB(REFERENCE, name, result, declared, passed)};
SIGNATURES(POOL_OF_STUBS)

/* One stub for all functions beyond the pool. A function without a slot runs unrecorded. */
__attribute__((section("interpose_stubs"))) static PyObject *
stub_further(PyObject *function, PyObject *const *arguments, size_t count, PyObject *names)
{
    struct slot *slot = further_slot_of(function);
    if (LIKELY(slot))
        return enter_vector(slot, function, arguments, count, names);
    return ((vector_function)further_slot_after(NULL)->real)(function, arguments, count, names);
}

#define ENTRY_OF_POOL(name, ...) [SIGNATURE_##name] = {slots_##name, stubs_##name},
static const struct stub_pool {
    struct slot *slots;
    void *const *stubs;
} stub_pools[SIGNATURE_COUNT] = {SIGNATURES(ENTRY_OF_POOL)};

/* How many slots of each pool were ever taken: the first ones. Nobody touches the memory of the others. */
static unsigned ever_taken[SIGNATURE_COUNT];

static void note_taken(enum signature signature, unsigned count)
{
    unsigned known = __atomic_load_n(&ever_taken[signature], __ATOMIC_RELAXED);
    while (known < count && !__atomic_compare_exchange_n(&ever_taken[signature], &known, count, false,
                                                         __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

/* Where threads run at once one may still be on its way through the stub to the function that it stood for last. */
static bool may_stand_for(const struct slot *slot, const void *real)
{
    return !IS_FREE_THREADED || !slot->real || slot->real == real;
}

struct slot *slot_take(enum signature signature, const void *real)
{
    for (unsigned index = 0; index < STUBS; index++) {
        struct slot *slot = &stub_pools[signature].slots[index];
        if (may_stand_for(slot, real) && !__atomic_exchange_n(&slot->taken, 1, __ATOMIC_ACQUIRE)) {
            note_taken(signature, index + 1);
            return slot;
        }
    }
    return NULL;
}

struct slot *slot_take_further(PyObject *function)
{
    return further_slot_take(function);
}

void slot_is_unfit(struct slot *slot)
{
    bool taken = side_begin(SIDE_SLOTS); /* nobody lowers its levels, or acts on all slots, then */
    __atomic_store_n(&slot->watched, WATCHED_unfit, __ATOMIC_RELEASE);
    if (taken)
        side_end(SIDE_SLOTS);
}

static bool is_in_pool(enum signature signature, const struct slot *slot)
{
    const struct slot *first = stub_pools[signature].slots;
    return slot >= first && slot < first + STUBS;
}

void slot_give_back(struct slot *slot)
{
    bool is_further = true;
    for (unsigned signature = 0; signature < SIGNATURE_COUNT; signature++)
        is_further &= !is_in_pool((enum signature)signature, slot);
    if (is_further)
        further_slot_give_back(slot);
    else
        slot->taken = 0;
}

void *slot_stub(enum signature signature, const struct slot *slot)
{
    if (!is_in_pool(signature, slot))
        return (void *)stub_further;
    return stub_pools[signature].stubs[slot - stub_pools[signature].slots];
}

bool slots_lower(uint32_t number, enum level level)
{
    bool found = false;
    if (!side_begin(SIDE_SLOTS))
        return false;
    for (unsigned signature = 0; signature < SIGNATURE_COUNT; signature++)
        for (unsigned index = 0; index < __atomic_load_n(&ever_taken[signature], __ATOMIC_ACQUIRE); index++)
            found |= slot_lower(&stub_pools[signature].slots[index], number, level);
    for (struct slot *slot = NULL; (slot = further_slot_after(slot));)
        found |= slot_lower(slot, number, level);
    side_end(SIDE_SLOTS);
    return found;
}

void slots_each(void (*act)(struct slot *slot))
{
    bool taken = side_begin(SIDE_SLOTS);
    for (unsigned signature = 0; signature < SIGNATURE_COUNT; signature++)
        for (unsigned index = 0; index < __atomic_load_n(&ever_taken[signature], __ATOMIC_ACQUIRE); index++)
            act(&stub_pools[signature].slots[index]);
    for (struct slot *slot = NULL; (slot = further_slot_after(slot));)
        act(slot);
    if (taken)
        side_end(SIDE_SLOTS);
}

/* The linker gives the ends of the stubs' section. */
extern const char __start_interpose_stubs[] __attribute__((visibility("hidden")));
extern const char __stop_interpose_stubs[] __attribute__((visibility("hidden")));

int is_stub(const void *function)
{
    return (const char *)function >= __start_interpose_stubs && (const char *)function < __stop_interpose_stubs;
}
