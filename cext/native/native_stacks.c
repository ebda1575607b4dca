#define _GNU_SOURCE
#include "native/native_stacks.h"

#include "core/interning.h"
#include "core/readable.h"
#include "core/recorder.h"
#include "native/native_callers.h"
#include "native/native_functions.h"

/* --- by the library */

/* 0 if no object has code there. */
static uint32_t site_of(const void *address)
{
    const struct caller *caller = native_caller_at((uintptr_t)address);
    return caller && caller->serial == recorder.serial ? __atomic_load_n(&caller->site, __ATOMIC_ACQUIRE) : 0;
}

static uint32_t stack_by_library(struct thread *thread, const void *caller, uint32_t outer)
{
    uint64_t key = hash_mix(hash_mix(hash_word((uintptr_t)caller), outer), native_callers_now()) | 1;
    uint32_t stack = cached_find(&thread->native_stack, key);
    if (LIKELY(stack))
        return stack;
    uint32_t site = site_of(caller);
    if (!site)
        return outer;
    stack = stack_intern(site, outer, 0);
    if (stack)
        cached_keep(&thread->native_stack, key, stack);
    return stack;
}

/* --- which part of the thread's stack can be read: a rule may be wrong, for example in hand-written assembly */

enum { PAGE = 4096, FARTHEST = 1024 * 1024, PAGES_BITS = 28 };

/* First page and number of readable pages, in one word, because a signal handler may use it, too. */
static struct region readable_of(const struct thread *thread)
{
    uint64_t word = __atomic_load_n(&thread->readable, __ATOMIC_RELAXED);
    uintptr_t begin = (uintptr_t)(word >> PAGES_BITS) * PAGE;
    return (struct region){begin, begin + (uintptr_t)(word & ((1u << PAGES_BITS) - 1)) * PAGE};
}

static void keep_readable(struct thread *thread, struct region readable)
{
    uint64_t word = (uint64_t)(readable.begin / PAGE) << PAGES_BITS | (readable.end - readable.begin) / PAGE;
    __atomic_store_n(&thread->readable, word, __ATOMIC_RELAXED);
}

static bool can_read_page(uintptr_t page)
{
    char byte;
    return readable_copy(&byte, (const void *)page, 1);
}

/* Only if all pages in between are readable, too. */
static bool extend(struct region *readable, uintptr_t page)
{
    while (readable->end <= page && page - readable->end < FARTHEST && can_read_page(readable->end))
        readable->end += PAGE;
    while (readable->begin > page && readable->begin - page < FARTHEST && can_read_page(readable->begin - PAGE))
        readable->begin -= PAGE;
    return is_in(*readable, page);
}

static uintptr_t page_of(uintptr_t address)
{
    return address & ~(uintptr_t)(PAGE - 1);
}

/* Begin at the wrapper's frame, which is readable. */
static struct region readable_around(const struct thread *thread, uintptr_t frame)
{
    struct region readable = readable_of(thread);
    bool is_known = is_in(readable, frame) || (page_of(frame) < readable.end && extend(&readable, page_of(frame)));
    return is_known ? readable : (struct region){page_of(frame), page_of(frame) + PAGE};
}

/* --- by the functions */

enum { DEEPEST = 64 };

/* A frame: the address that a call in it returns to, and the registers there. */
struct place {
    uintptr_t address, stack, pointer;
};

struct walk {
    struct place at;
    struct region readable;
    uint32_t sites[DEEPEST];
    uint32_t count;
    uint32_t is_cut; /* callers are missing */
};

static bool read_word(struct walk *walk, uintptr_t address, uintptr_t *word)
{
    if (address % sizeof *word || (UNLIKELY(!is_in(walk->readable, address)) && !extend(&walk->readable, page_of(address))))
        return false;
    *word = *(const uintptr_t *)address;
    return true;
}

#if defined __x86_64__
/* A wrapper's frame pointer points to its caller's, and the return address comes next. */
static struct place caller_of_wrapper(struct native_origin from)
{
    const uintptr_t *frame = (const uintptr_t *)from.frame;
    return (struct place){(uintptr_t)from.caller, from.frame + 2 * sizeof *frame, *frame};
}

static bool find_end(struct walk *walk, const struct frame_rule *rule, uintptr_t *end)
{
    *end = (rule->base == BASE_stack ? walk->at.stack : walk->at.pointer) + (uintptr_t)(intptr_t)rule->frame_at;
    return rule->base != BASE_kept || read_word(walk, *end, end);
}

static bool find_pointer(struct walk *walk, const struct frame_rule *rule, uintptr_t end)
{
    uintptr_t base = rule->pointer == POINTER_in_frame ? end : walk->at.pointer;
    if (rule->pointer == POINTER_lost)
        walk->at.pointer = 0;
    return rule->pointer == POINTER_same || rule->pointer == POINTER_lost ||
           read_word(walk, base + (uintptr_t)(intptr_t)rule->pointer_at, &walk->at.pointer);
}

/* The stack grows down, so each caller's frame is at a higher address. */
static bool go_out(struct walk *walk, const struct frame_rule *rule)
{
    uintptr_t end;
    if (!rule->is_known || !find_end(walk, rule, &end) || end <= walk->at.stack)
        return false;
    if (!find_pointer(walk, rule, end) || !read_word(walk, end - sizeof end, &walk->at.address))
        return false;
    walk->at.stack = end;
    return true;
}
#else
/* Code that follows this architecture's ABI keeps frame pointers: each points to its caller's, and the return address is next. */
static struct place caller_of_wrapper(struct native_origin from)
{
    return (struct place){(uintptr_t)from.caller, from.frame, *(const uintptr_t *)from.frame};
}

static bool go_out(struct walk *walk, const struct frame_rule *rule)
{
    struct place *at = &walk->at;
    uintptr_t end = at->pointer;
    (void)rule;
    if (end <= at->stack || !read_word(walk, end, &at->pointer) || !read_word(walk, end + sizeof end, &at->address))
        return false;
    at->stack = end;
    return true;
}
#endif

/* True if nothing called the function, or the address is in the interpreter. */
static bool is_outermost(const struct known_return *known, const struct place *at)
{
    return known->is_interpreter || known->rule.is_last || !at->address;
}

static void note_functions(struct thread *thread, struct walk *walk)
{
    for (unsigned depth = 0; depth < DEEPEST; depth++) {
        struct known_return known = native_return_to(thread, walk->at.address);
        if (known.site)
            walk->sites[walk->count++] = known.site;
        if (is_outermost(&known, &walk->at))
            return;
        if (!go_out(walk, &known.rule))
            break;
    }
    walk->is_cut = 1;
}

static uint32_t intern(const struct walk *walk, uint32_t outer)
{
    uint32_t stack = outer, is_cut = walk->is_cut;
    for (uint32_t place = walk->count; place > 0; place--) {
        stack = stack_intern(walk->sites[place - 1], stack, is_cut);
        is_cut = 0;
    }
    return stack;
}

static uint64_t key_of(const struct walk *walk, uint32_t outer)
{
    uint64_t key = hash_mix(hash_word((uint64_t)outer << 1 | walk->is_cut), native_callers_now());
    for (uint32_t place = 0; place < walk->count; place++)
        key = hash_mix(key, walk->sites[place]);
    return key | 1;
}

static uint32_t stack_by_functions(struct thread *thread, struct native_origin from, uint32_t outer)
{
    struct walk walk = {.at = caller_of_wrapper(from), .readable = readable_around(thread, from.frame)};
    note_functions(thread, &walk);
    keep_readable(thread, walk.readable);
    uint64_t key = key_of(&walk, outer);
    uint32_t stack = cached_find(&thread->native_stack, key);
    if (LIKELY(stack))
        return stack;
    stack = intern(&walk, outer);
    if (stack)
        cached_keep(&thread->native_stack, key, stack);
    return stack;
}

uint32_t native_stack_of(struct thread *thread, struct native_origin from, uint32_t outer)
{
    return UNLIKELY(recorder.native_functions) ? stack_by_functions(thread, from, outer) : stack_by_library(thread, from.caller, outer);
}
