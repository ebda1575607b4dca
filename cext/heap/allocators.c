#include "heap/allocators.h"

#include <errno.h>

#include "cpython/waiting_sites.h"
#include "heap/heap.h"

enum { DOMAINS = PYMEM_DOMAIN_OBJ + 1 };

/* The allocator that was there before. It gets its context unchanged: a thread that allocates without the
   interpreter lock, while one allocator replaces another, may have the function of one and the context of the other. */
static PyMemAllocatorEx before[DOMAINS];

/* This thread asks for memory only to see whether ours are asked. */
static __thread struct {
    bool on, answered;
} probe __attribute__((tls_model("initial-exec")));

/* An allocator that calls another one. The inner one's allocations are not counted a second time. */
static __thread uint32_t asking __attribute__((tls_model("initial-exec")));

/* Memory of the domain raw may be asked for without the interpreter's lock. */
static uint32_t stack_for(int domain)
{
    frame *here = own_innermost_frame();
    if (!here)
        return 0;
    return domain == PYMEM_DOMAIN_RAW ? stack_without_lock(here) : stack_of_waiting(here, false);
}

static void record(void *address, size_t bytes, int domain)
{
    struct heap_weight weight = heap_draw(bytes);
    struct thread *thread = weight.allocations && !interpreter_ends() ? recording() : NULL;
    if (!thread)
        return;
    if (heap.every_bytes) {
        struct reading begin = own_begin(thread);
        heap_add((uintptr_t)address, weight, stack_for(domain));
        own_end(thread, begin);
    } else { /* to read clocks would take longer than all the rest */
        heap_add((uintptr_t)address, weight, stack_for(domain));
    }
}

static __attribute__((noinline)) void sample(void *address, size_t bytes, int domain)
{
    int saved = errno;
    if (probe.on)
        probe.answered = true;
    else
        record(address, bytes, domain);
    errno = saved;
}

/* What the interpreter frees as it is taken down was live at the end of the program. */
static __attribute__((noinline)) struct heap_freed take(void *address)
{
    return interpreter_ends() ? (struct heap_freed){0} : heap_take((uintptr_t)address);
}

static inline void *look_at(void *address, size_t bytes, int domain)
{
    asking--;
    if (UNLIKELY(!address || asking))
        return address;
    heap_left -= (int64_t)bytes;
    if (UNLIKELY(heap_left < heap.below))
        sample(address, bytes, domain);
    return address;
}

static inline void *allocate(void *context, size_t bytes, int domain)
{
    asking++;
    return look_at(before[domain].malloc(context, bytes), bytes, domain);
}

static inline void *allocate_zeros(void *context, size_t count, size_t each, int domain)
{
    asking++;
    return look_at(before[domain].calloc(context, count, each), count * each, domain);
}

static inline void *reallocate(void *context, void *old, size_t bytes, int domain)
{
    struct heap_freed gone = {0};
    if (heap_may_have(old))
        gone = take(old);
    asking++;
    void *address = before[domain].realloc(context, old, bytes);
    if (UNLIKELY(!address && gone.sample.address))
        heap_put_back(&gone);
    return look_at(address, bytes, domain);
}

static inline void release(void *context, void *address, int domain)
{
    if (heap_may_have(address))
        take(address);
    before[domain].free(context, address);
}

#define ALLOCATOR_OF(domain, name) \
    static void *name##_malloc(void *context, size_t bytes) { return allocate(context, bytes, domain); } \
    static void *name##_calloc(void *context, size_t count, size_t each) \
    { \
        return allocate_zeros(context, count, each, domain); \
    } \
    static void *name##_realloc(void *context, void *old, size_t bytes) { return reallocate(context, old, bytes, domain); } \
    static void name##_free(void *context, void *address) { release(context, address, domain); }

ALLOCATOR_OF(PYMEM_DOMAIN_RAW, raw)
ALLOCATOR_OF(PYMEM_DOMAIN_MEM, memory)
ALLOCATOR_OF(PYMEM_DOMAIN_OBJ, object)

#define FUNCTIONS_OF(name) {NULL, name##_malloc, name##_calloc, name##_realloc, name##_free}

static const PyMemAllocatorEx ours[DOMAINS] = {
    [PYMEM_DOMAIN_RAW] = FUNCTIONS_OF(raw),
    [PYMEM_DOMAIN_MEM] = FUNCTIONS_OF(memory),
    [PYMEM_DOMAIN_OBJ] = FUNCTIONS_OF(object),
};

static void *ask(int domain)
{
    if (domain == PYMEM_DOMAIN_RAW)
        return PyMem_RawMalloc(1);
    return domain == PYMEM_DOMAIN_MEM ? PyMem_Malloc(1) : PyObject_Malloc(1);
}

static void give_back(int domain, void *memory)
{
    if (domain == PYMEM_DOMAIN_RAW)
        PyMem_RawFree(memory);
    else if (domain == PYMEM_DOMAIN_MEM)
        PyMem_Free(memory);
    else
        PyObject_Free(memory);
}

/* Another allocator may have been put before ours and still call it; or may have restored the one before both. */
static bool is_asked(int domain)
{
    int64_t left = heap_left;
    heap_left = heap.below - 1;
    probe.answered = false;
    probe.on = true;
    give_back(domain, ask(domain));
    probe.on = false;
    heap_left = left;
    return probe.answered;
}

static void put(int domain)
{
    PyMem_GetAllocator((PyMemAllocatorDomain)domain, &before[domain]);
    PyMemAllocatorEx with_ours = ours[domain];
    with_ours.ctx = before[domain].ctx;
    PyMem_SetAllocator((PyMemAllocatorDomain)domain, &with_ours);
}

void allocators_begin(void)
{
    for (int domain = 0; domain < DOMAINS; domain++)
        if (!is_asked(domain))
            put(domain);
}

void allocators_end(void)
{
    for (int domain = 0; domain < DOMAINS; domain++) {
        PyMemAllocatorEx now;
        PyMem_GetAllocator((PyMemAllocatorDomain)domain, &now);
        if (now.malloc == ours[domain].malloc)
            PyMem_SetAllocator((PyMemAllocatorDomain)domain, &before[domain]);
    }
}
