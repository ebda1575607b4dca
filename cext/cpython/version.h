/* Where the versions of CPython differ: each has a file that says the same in its own way. What several have alike stands once,
   in a file that says until, or since, when.

       UNSUPPORTED                what of a version that is not known yet is recorded alone, in words; else NULL
       running_state()            the calling thread's state, or NULL
       RUNNING_STATE_IS_OWN       is that so for a thread that does not have the lock, too? Else it is then the state of whoever has it
       frame_running(state)       the frame that runs, where it is known to be Python code
       frame_code(frame)          its code object
       frame_place(frame)         the instruction being executed
       frame_instruction(frame)   the same as an index, in code units
       frame_previous(frame)      the next one outward, which may be hidden
       frame_is_hidden(frame)     has it not begun yet, or is it no Python code at all?
       frame_globals(frame), frame_builtins(frame)  its names; borrowed
       frame_is_of_generator(frame)  is it of a generator, or of a coroutine?
       frame_value(frame, index)  an argument of its function, which must have one, or what is on its stack behind its names; borrowed
       frame_generator(frame)     the generator or coroutine whose frame it is
       frame_is_interpreters(frame)  is it nobody's, between C and Python?
       code_is_immortal(code)     is it never freed?
       code_version(code)         a number that no other code object has or will have; 0: it has none
       generator_name(generator)  what it is called by; borrowed, or NULL
       coroutine_has_not_begun(coroutine), coroutine_is_running(coroutine), coroutine_has_ended(coroutine)  how far it has come
       FUNCTIONS_ENTERED          which functions are entered past their vectorcall, if they are of the type of functions itself
       function_set_vectorcall(function, to)  exchange it; what was specialised for the function is so no more
       value_of_digit(number)     an int of one digit, as nearly all descriptors are; -1 of another
       code_keep(code)            a new reference, or NULL where it is just being freed; code_can_be_kept(code) comes before
       interpreter_ends()         is the interpreter being taken down? Modules may be gone then
       extra_index, extra_get, extra_set  data that is kept with code objects

       LOCK_OF(interpreter)       its lock, which may be that of others as well (cpython/interpreter_lock.c)

       struct recursive_lock, COUNT_OF_FIRST, plain_lock_fits(lock), is_free_plain(lock), is_free_recursive(lock)  locks, from within

       HAS_MONITORING             is there sys.monitoring? Else there are trace functions
       SMALL_NUMBERS              up to this one the objects of numbers are ready, and none is made
       HAS_PYTHONS_BUFFERS        may Python code make a buffer (`__buffer__`)?
       HAS_ENTRY_REFERENCES       can entries of dictionaries be had as new references?
       VISITS_OBJECTS             does the collector show what it tracks?
       SPAWN_TAKES_NONE           may the environment of os.posix_spawn be None?
       THREADS_HAVE_CONTEXTS      does a thread run what it is for in a context of its own?

       THREAD_FRAME, THREAD_STEPS, STEP_FRAME, FRAME_CODE, FRAME_PLACE, FRAME_TAG, FRAME_DEPTH, FRAME_ENTRY,
       FRAME_NO_CODE, THREAD_TASK
                                  where who samples from outside finds frames and tasks (cpython/sampled_layout.c)

   and lists: opcodes of jumps that may not be taken, backward alone or not; of what returns; of what ends a statement, beside
   what all versions have; of what stands behind a jump for the interpreter alone; of what a call compiled
   as a loop does with each value of a generator expression; of a loop's end, where lines are forgotten behind
   it (cpython/bytecode.h); the events that tell of such jumps. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

enum functions_entered {
    ENTERED_none,
    ENTERED_all,
    ENTERED_initialisers, /* `__init__` with plain arguments, from where its class is often called */
};

#define HAS_MONITORING (PY_VERSION_HEX >= 0x030c0000) /* else there are trace functions */

#if PY_VERSION_HEX >= 0x03100000 || defined INTERPOSE_UNKNOWN_VERSION /* which is for tests */
#define IS_KNOWN 0
#else
#define IS_KNOWN 1
#endif

#if PY_VERSION_HEX < 0x030b0000
#error "interpose needs CPython 3.11 or later"
#elif !IS_KNOWN
#include "cpython/version_unknown.h"
#else
#include "cpython/version_known.h"
#if PY_VERSION_HEX < 0x030c0000
#include "cpython/version_311.h"
#elif PY_VERSION_HEX < 0x030d0000
#include "cpython/version_312.h"
#elif PY_VERSION_HEX < 0x030e0000
#include "cpython/version_313.h"
#elif PY_VERSION_HEX < 0x030f0000
#include "cpython/version_314.h"
#else
#include "cpython/version_315.h"
#endif
#endif
