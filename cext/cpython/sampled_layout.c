#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE 1 /* before all else: the inner headers say otherwise what the outer ones say without it */
#include <Python.h>
#undef Py_BUILD_CORE

#include "cpython/frame.h"
#include "cpython/sampled_layout.h"
#include "cpython/tasks.h"

#if IS_KNOWN && !defined Py_GIL_DISABLED

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#define Py_BUILD_CORE 1
#include <internal/pycore_runtime.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_dict.h>
#undef Py_BUILD_CORE
#pragma GCC diagnostic pop

enum { THREAD_STATE_BYTES_AT_MOST = 1024 };

/* What all versions show in public headers, or have alike. */
static void tell_objects(struct interpreter_layout *layout)
{
    layout->runtime = (uintptr_t)&_PyRuntime;
    layout->code_type = (uintptr_t)&PyCode_Type;
    layout->thread_next = offsetof(PyThreadState, next);
    layout->thread_tid = offsetof(PyThreadState, native_thread_id);
    layout->thread_chunk = offsetof(PyThreadState, datastack_chunk);
    layout->thread_top = offsetof(PyThreadState, datastack_top);
    layout->thread_limit = offsetof(PyThreadState, datastack_limit);
    layout->thread_bytes = sizeof(PyThreadState) < THREAD_STATE_BYTES_AT_MOST ? sizeof(PyThreadState) : THREAD_STATE_BYTES_AT_MOST;
    layout->frame_bytes = offsetof(frame, localsplus);
    layout->frame_previous = offsetof(frame, previous);
    layout->frame_owner = offsetof(frame, owner);
    layout->code_bytes = offsetof(PyCodeObject, co_code_adaptive);
    layout->code_units = offsetof(PyVarObject, ob_size);
    layout->code_variables = offsetof(PyCodeObject, co_nlocalsplus);
    layout->code_stack = offsetof(PyCodeObject, co_stacksize);
    layout->code_file = offsetof(PyCodeObject, co_filename);
    layout->code_function = offsetof(PyCodeObject, co_qualname);
    layout->code_first_line = offsetof(PyCodeObject, co_firstlineno);
    layout->code_lines = offsetof(PyCodeObject, co_linetable);
    layout->code_instructions = offsetof(PyCodeObject, co_code_adaptive);
    layout->code_flags = offsetof(PyCodeObject, co_flags);
    layout->code_of_generator = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
    layout->code_of_coroutine = CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
    layout->object_type = offsetof(PyObject, ob_type);
    layout->text_type = (uintptr_t)&PyUnicode_Type;
    layout->text_length = offsetof(PyASCIIObject, length);
    layout->text_state = offsetof(PyASCIIObject, state);
    layout->text_ascii = sizeof(PyASCIIObject);
    layout->text_other = sizeof(PyCompactUnicodeObject);
    layout->bytes_length = offsetof(PyBytesObject, ob_base.ob_size);
    layout->bytes_value = offsetof(PyBytesObject, ob_sval);
    layout->interpreters = offsetof(_PyRuntimeState, interpreters.head);
    layout->interpreter_next = offsetof(PyInterpreterState, next);
    layout->interpreter_threads = offsetof(PyInterpreterState, threads.head);
}

static void tell_collector(struct interpreter_layout *layout)
{
    PyInterpreterState *interpreter = PyInterpreterState_Main();
    layout->collecting = (uintptr_t)&interpreter->gc.collecting;
    layout->lock_holder = (uintptr_t)&LOCK_OF(interpreter)->last_holder;
}

static void tell_frames(struct interpreter_layout *layout)
{
    layout->thread_frame = offsetof(PyThreadState, THREAD_FRAME);
    layout->thread_steps = THREAD_STEPS;
    layout->step_frame = STEP_FRAME;
    layout->frame_code = offsetof(frame, FRAME_CODE);
    layout->frame_place = offsetof(frame, FRAME_PLACE);
    layout->frame_tag = FRAME_TAG;
    layout->frame_depth = FRAME_DEPTH;
    layout->frame_entry = FRAME_ENTRY;
    layout->frame_no_code = FRAME_NO_CODE;
}

static void tell_tasks(struct interpreter_layout *layout)
{
    layout->frame_of_generator = FRAME_OWNED_BY_GENERATOR;
    layout->coroutine_frame = offsetof(PyGenObject, gi_iframe);
    layout->coroutine_state = offsetof(PyGenObject, gi_frame_state);
    layout->coroutine_runs = FRAME_EXECUTING;
    layout->thread_task = THREAD_TASK;
    if (THREAD_TASK)
        return;
    layout->running_tasks = (uintptr_t)find_running_tasks();
    layout->dictionary_keys = offsetof(PyDictObject, ma_keys);
    layout->keys_index_bytes = offsetof(struct _dictkeysobject, dk_log2_index_bytes);
    layout->keys_count = offsetof(struct _dictkeysobject, dk_nentries);
    layout->keys_index = offsetof(struct _dictkeysobject, dk_indices);
}

struct interpreter_layout sampled_layout(void)
{
    struct interpreter_layout layout = {0};
    tell_objects(&layout);
    tell_collector(&layout);
    tell_frames(&layout);
    tell_tasks(&layout);
    return layout;
}

#else

struct interpreter_layout sampled_layout(void)
{
    return (struct interpreter_layout){0};
}

#endif
