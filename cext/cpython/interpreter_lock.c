#define Py_BUILD_CORE 1 /* before all else: what these headers declare is otherwise named by macros */
#include "cpython/interpreter_lock.h"

#include "cpython/version.h"

#if !IS_KNOWN || defined Py_GIL_DISABLED
const char *interpreter_lock_find(struct interpreter_lock *lock)
{
    (void)lock;
    return UNSUPPORTED ? UNSUPPORTED : "the interpreter has no lock";
}
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#define Py_BUILD_CORE 1
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#pragma GCC diagnostic pop

/* Where it does not say that the calling thread has it, it is laid out otherwise than these headers have it. */
const char *interpreter_lock_find(struct interpreter_lock *lock)
{
    PyThreadState *state = running_state();
    const struct _gil_runtime_state *found = LOCK_OF(state->interp);
    if (!found)
        return "the interpreter has no lock";
    *lock = (struct interpreter_lock){
        .freed = &found->cond,
        .taken = &found->switch_cond,
        .held = (const int *)&found->locked,
        .holder = (const uintptr_t *)&found->last_holder,
    };
    bool says_so = lock_is_held(lock) && lock_holder(lock) == state;
    return says_so ? NULL : "the interpreter's lock is laid out otherwise than is known";
}
#endif
