#include "program/message_list.h"

/* The tags of librdkafka, which are part of its binary interface, and how many words follow each. */
#define TAGS(X) \
    X(end, 0) X(topic_name, 1) X(topic, 1) X(partition, 1) X(value, 2) X(key, 2) X(opaque, 1) X(flags, 1) X(timestamp, 1) \
    X(header, 3) X(headers, 1)
#define NUMBER_OF_TAG(name, words) TAG_##name,
#define WORDS_OF_TAG(name, words) words,
enum tag { TAGS(NUMBER_OF_TAG) TAG_COUNT };
static const uint8_t words_of_tag[] = {TAGS(WORDS_OF_TAG)};

static void keep(struct message_list *list, enum tag tag, const uint64_t *values)
{
    if (tag == TAG_topic_name)
        list->topic_name = (const char *)values[0];
    else if (tag == TAG_topic)
        list->topic = (const void *)values[0];
    else if (tag == TAG_value)
        list->value_bytes = values[1];
}

void message_list_read(struct message_list *list, va_list values)
{
    enum tag tag;
    do {
        uint64_t *word = &list->words[list->count];
        tag = (enum tag)(uint32_t)(*word = va_arg(values, uint64_t));
        for (unsigned each = 0; each < words_of_tag[tag]; each++)
            word[1 + each] = va_arg(values, uint64_t);
        keep(list, tag, word + 1);
        list->count += 1 + words_of_tag[tag];
    } while (tag != TAG_end);
}

#if defined(__x86_64__) || defined(__aarch64__)

void *message_list_known, **message_list_real;

#ifdef __x86_64__
enum { REGISTERS = 6 };
#else
enum { REGISTERS = 8 };
#endif

/* Where the call goes on. The first register has the argument before the list. */
__attribute__((used)) void *interpose_message_list_way(const uint64_t *registers, const uint64_t *stack)
{
    for (unsigned at = 1; at <= MOST_WORDS;) {
        uint32_t tag = (uint32_t)(at < REGISTERS ? registers[at] : stack[at - REGISTERS]);
        if (tag >= TAG_COUNT)
            break;
        if (tag == TAG_end)
            return message_list_known;
        at += 1 + words_of_tag[tag];
    }
    return *message_list_real;
}

#ifdef __x86_64__
__asm__(".pushsection .text\n"
        ".hidden message_list_enter\n.globl message_list_enter\n.type message_list_enter, @function\n"
        "message_list_enter:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
        "movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "subq $192, %rsp\n"
        "movq %rdi, (%rsp)\nmovq %rsi, 8(%rsp)\nmovq %rdx, 16(%rsp)\n"
        "movq %rcx, 24(%rsp)\nmovq %r8, 32(%rsp)\nmovq %r9, 40(%rsp)\n"
        "movq %rax, 48(%rsp)\n" /* how many vector registers are used */
        "movaps %xmm0, 64(%rsp)\nmovaps %xmm1, 80(%rsp)\nmovaps %xmm2, 96(%rsp)\nmovaps %xmm3, 112(%rsp)\n"
        "movaps %xmm4, 128(%rsp)\nmovaps %xmm5, 144(%rsp)\nmovaps %xmm6, 160(%rsp)\nmovaps %xmm7, 176(%rsp)\n"
        "movq %rsp, %rdi\n"
        "leaq 16(%rbp), %rsi\n"
        "call interpose_message_list_way\n"
        "movq %rax, %r11\n"
        "movaps 64(%rsp), %xmm0\nmovaps 80(%rsp), %xmm1\nmovaps 96(%rsp), %xmm2\nmovaps 112(%rsp), %xmm3\n"
        "movaps 128(%rsp), %xmm4\nmovaps 144(%rsp), %xmm5\nmovaps 160(%rsp), %xmm6\nmovaps 176(%rsp), %xmm7\n"
        "movq (%rsp), %rdi\nmovq 8(%rsp), %rsi\nmovq 16(%rsp), %rdx\n"
        "movq 24(%rsp), %rcx\nmovq 32(%rsp), %r8\nmovq 40(%rsp), %r9\n"
        "movq 48(%rsp), %rax\n"
        "leave\n"
        ".cfi_def_cfa %rsp, 8\n"
        "jmp *%r11\n"
        ".cfi_endproc\n.size message_list_enter, . - message_list_enter\n"
        ".popsection\n");
#else
__asm__(".pushsection .text\n"
        ".balign 4\n"
        ".hidden message_list_enter\n.globl message_list_enter\n.type message_list_enter, %function\n"
        "message_list_enter:\n"
        ".cfi_startproc\n"
        "hint #34\n" /* where a jump may lead to */
        "stp x29, x30, [sp, #-224]!\n"
        ".cfi_def_cfa_offset 224\n.cfi_offset 29, -224\n.cfi_offset 30, -216\n"
        "mov x29, sp\n"
        "stp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\nstp x4, x5, [sp, #48]\nstp x6, x7, [sp, #64]\n"
        "str x8, [sp, #80]\n"
        "stp q0, q1, [sp, #96]\nstp q2, q3, [sp, #128]\nstp q4, q5, [sp, #160]\nstp q6, q7, [sp, #192]\n"
        "add x0, sp, #16\n"
        "add x1, sp, #224\n"
        "bl interpose_message_list_way\n"
        "mov x16, x0\n"
        "ldp q0, q1, [sp, #96]\nldp q2, q3, [sp, #128]\nldp q4, q5, [sp, #160]\nldp q6, q7, [sp, #192]\n"
        "ldr x8, [sp, #80]\n"
        "ldp x0, x1, [sp, #16]\nldp x2, x3, [sp, #32]\nldp x4, x5, [sp, #48]\nldp x6, x7, [sp, #64]\n"
        "ldp x29, x30, [sp], #224\n"
        ".cfi_restore 30\n.cfi_restore 29\n.cfi_def_cfa_offset 0\n"
        "br x16\n"
        ".cfi_endproc\n.size message_list_enter, . - message_list_enter\n"
        ".popsection\n");
#endif
#endif
