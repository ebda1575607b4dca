#define _GNU_SOURCE
#include "core/spare_stack.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/session.h"
#include "core/threads.h"

/* What unwinds or shows a stack is told where the caller's is. */
void interpose_call_on(void *about, void (*does)(void *), void *top);

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".hidden interpose_call_on\n.globl interpose_call_on\n.type interpose_call_on, @function\n"
        "interpose_call_on:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
        "movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "movq %rdx, %rsp\n"
        "call *%rsi\n"
        "leave\n"
        ".cfi_def_cfa %rsp, 8\n"
        "ret\n"
        ".cfi_endproc\n.size interpose_call_on, . - interpose_call_on\n"
        ".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
        ".balign 4\n"
        ".hidden interpose_call_on\n.globl interpose_call_on\n.type interpose_call_on, %function\n"
        "interpose_call_on:\n"
        ".cfi_startproc\n"
        "hint #34\n" /* where a jump may lead to */
        "stp x29, x30, [sp, #-16]!\n"
        ".cfi_def_cfa_offset 16\n.cfi_offset 29, -16\n.cfi_offset 30, -8\n"
        "mov x29, sp\n"
        ".cfi_def_cfa_register 29\n"
        "mov sp, x2\n"
        "blr x1\n"
        "mov sp, x29\n"
        ".cfi_def_cfa_register 31\n"
        "ldp x29, x30, [sp], #16\n"
        ".cfi_restore 30\n.cfi_restore 29\n.cfi_def_cfa_offset 0\n"
        "ret\n"
        ".cfi_endproc\n.size interpose_call_on, . - interpose_call_on\n"
        ".popsection\n");
#else
void interpose_call_on(void *about, void (*does)(void *), void *top)
{
    (void)top;
    does(about);
}
#endif

static void *map_spare(void)
{
    void *memory = mmap(NULL, SPARE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Is it a child of vfork(2), which has its parent's thread, and which that waits for? */
static bool is_borrowed(void)
{
    return session_is_ours() && getpid() != session.process;
}

void *spare_take(void)
{
    struct thread *thread = current_thread;
    int saved = errno;
    bool is_lent = thread && is_borrowed();
    void *memory = is_lent && thread->is_shared ? NULL : is_lent && thread->lent ? thread->lent : map_spare();
    errno = saved;
    return memory;
}

void spare_release(void *memory)
{
    int saved = errno;
    if (memory && !(current_thread && current_thread->lent == memory))
        munmap(memory, SPARE_BYTES);
    errno = saved;
}

/* What opens files is where a thread can be cancelled, and what starts a program is not. The thread may be known only now. */
void spare_run(void *memory, void (*does)(void *), void *about)
{
    int cancels;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancels);
    interpose_call_on(about, does, (char *)memory + SPARE_BYTES);
    pthread_setcancelstate(cancels, &cancels);
    if (current_thread && !current_thread->lent && is_borrowed())
        current_thread->lent = memory;
}

void spare_call(void (*does)(void *), void *about)
{
    void *memory = spare_take();
    if (memory)
        spare_run(memory, does, about);
    else
        does(about);
    spare_release(memory);
}

void spare_is_shared(void)
{
    if (current_thread)
        current_thread->is_shared = 1;
}
