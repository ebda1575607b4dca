/* Where another process finds the Python code of each thread: addresses in the traced process, and offsets of what
   to read there. The traced process knows them and writes them into its log.xml; its monitor samples with them. This
   list is the only place that has them: the structure is made from it, and what the process writes, and what the
   sampler gets. */
#pragma once

#include <stdint.h>

#include "core/visible.h"

#define INTERPRETER_LAYOUT(X) \
    X(runtime)            /* address of the interpreter's own state; 0: nothing of all this is known */ \
    X(code_type)          /* address of the type of code objects */ \
    X(interpreters)       /* in the runtime: the first interpreter */ \
    X(interpreter_next)   /* in an interpreter: the next one */ \
    X(interpreter_threads) /* its first thread */ \
    X(collecting)         /* address: whether the main interpreter collects garbage, 32 bits */ \
    X(lock_holder)        /* address: the thread that had that interpreter's lock last */ \
    X(thread_bytes)       /* of a thread so much is read */ \
    X(thread_next)        /* the next thread of its interpreter */ \
    X(thread_tid)         /* the kernel's number of it */ \
    X(thread_frame)       /* its innermost frame, or what knows of it */ \
    X(thread_steps)       /* 1: that is in a structure of its own */ \
    X(step_frame)         /* and there in it */ \
    X(thread_chunk)       /* the memory of its frames */ \
    X(thread_top)         /* the end of its used part */ \
    X(thread_limit)       /* its own end */ \
    X(thread_task)        /* the task that asyncio runs; 0 if it keeps these in a dictionary */ \
    X(running_tasks)      /* address of the address of that dictionary */ \
    X(dictionary_keys)    /* in a dictionary: where its keys and values are */ \
    X(keys_index_bytes)   /* there: the logarithm of the size of an index, 8 bits */ \
    X(keys_count)         /* how many there are, or were */ \
    X(keys_index)         /* where the index begins, which the keys follow */ \
    X(frame_bytes)        /* of a frame so much is read */ \
    X(frame_code)         /* its code object */ \
    X(frame_tag)          /* bits of that address that are flags */ \
    X(frame_previous)     /* the frame around it */ \
    X(frame_place)        /* the address of its current instruction */ \
    X(frame_depth)        /* how many values are on its stack, 32 bits; -1 while it runs itself; 0: it has no such thing */ \
    X(frame_entry)        /* whether C code called it, 8 bits; 0: then another frame is around it */ \
    X(frame_owner)        /* its owner, 8 bits */ \
    X(frame_no_code)      /* from this owner on it has no code of its own; 256: none is so */ \
    X(frame_of_generator) /* the owner where it is a generator or a coroutine */ \
    X(coroutine_frame)    /* in such an object: its frame */ \
    X(coroutine_state)    /* what it does, 8 bits */ \
    X(coroutine_runs)     /* which is this while it runs */ \
    X(code_bytes)         /* of a code object so much is read */ \
    X(code_units)         /* how many instructions it has */ \
    X(code_variables)     /* how many variables a frame of it has, 32 bits */ \
    X(code_stack)         /* and how many values at most on its stack, 32 bits */ \
    X(code_file)          /* the name of its file */ \
    X(code_function)      /* its qualified name */ \
    X(code_flags)         /* what sort of function it is of, 32 bits */ \
    X(code_of_generator)  /* the flags of which code has one if its frame is in a generator or a coroutine */ \
    X(code_of_coroutine)  /* the flags of which a coroutine has one or more */ \
    X(code_first_line)    /* the line where it begins, 32 bits */ \
    X(code_lines)         /* its table of lines */ \
    X(code_instructions)  /* where its instructions begin */ \
    X(object_type)        /* in an object: its type */ \
    X(text_type)          /* address of the type of texts */ \
    X(text_length)        /* in a text: how many characters */ \
    X(text_state)         /* their layout, 32 bits */ \
    X(text_ascii)         /* where they begin, each a byte */ \
    X(text_other)         /* where they begin where they are not ASCII */ \
    X(bytes_length)       /* in bytes: how many */ \
    X(bytes_value)        /* where they begin */

#define DECLARE_PLACE(name) uint64_t name;
struct interpreter_layout {
    INTERPRETER_LAYOUT(DECLARE_PLACE)
};
#undef DECLARE_PLACE

VISIBLE extern const char *const interpreter_layout_names[]; /* in that order; ends with NULL */
