/* Where the versions of CPython differ: each has a file that says the same in its own way.

       running_state()            the calling thread's state, or NULL
       frame_running(state)       the frame that runs, where it is known to be Python code
       frame_code(frame)          its code object
       frame_place(frame)         the instruction being executed
       frame_first_argument(frame)  of its function, which must have one; borrowed
       frame_generator(frame)     the generator or coroutine whose frame it is
       interpreter_ends()         is the interpreter being taken down? Modules may be gone then
       extra_index, extra_get, extra_set  data that is kept with code objects

   and lists of opcodes: jumps that may not be taken, backward alone or not; what returns; what stores, beside what all
   versions have. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#define HAS_MONITORING (PY_VERSION_HEX >= 0x030c0000) /* else there are trace functions */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#define Py_BUILD_CORE 1
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_genobject.h>
#include <internal/pycore_instruments.h>
#include <internal/pycore_interpframe.h>
#endif
#undef Py_BUILD_CORE
#pragma GCC diagnostic pop

typedef struct _PyInterpreterFrame frame;

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030f0000
#error "interpose knows the frames of CPython 3.11, 3.12, 3.13 and 3.14"
#elif PY_VERSION_HEX < 0x030c0000
#include "cpython/version_311.h"
#elif PY_VERSION_HEX < 0x030d0000
#include "cpython/version_312.h"
#elif PY_VERSION_HEX < 0x030e0000
#include "cpython/version_313.h"
#else
#include "cpython/version_314.h"
#endif
