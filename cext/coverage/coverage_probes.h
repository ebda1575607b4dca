/* Statement coverage on 3.11: by a trace function or, where these are wanted, by probes, put where code is about to be executed for
   the first time. Where each coming-to is to be seen (contexts), and where branches are, by the trace function all the same.

   Modules are executed by the built-in functions exec and eval, whose definitions are changed in place; the main script by the
   interpreter itself. Which code that will be is known when its frame is there: for so long a frame evaluation function of ours
   (PEP 523) is. */
#pragma once

#include "coverage/coverage_trace.h"
#include "coverage/probes.h"

enum { MOST_FRAMES = 100000 }; /* that are waited for what does not come */

typedef PyObject *(*evaluation)(PyThreadState *, struct _PyInterpreterFrame *, int);

/* The frame that is waited for: the first of a module, or of this code, that is called from `outer`. */
struct expected {
    bool is_on, is_main;
    PyObject *code; /* borrowed; NULL: a module's */
    frame *outer;
};

static __thread struct expected expected;

static struct {
    evaluation before;
    uint32_t expecting, frames;
    PyMethodDef *exec, *eval;
    PyCFunction real_exec, real_eval;
} hooks;

static PyObject *evaluate(PyThreadState *state, struct _PyInterpreterFrame *here, int throws);

static void expect(struct expected what)
{
    PyInterpreterState *interpreter = known_codes.interpreter;
    expected = what;
    if (!what.is_on || hooks.expecting++)
        return;
    hooks.frames = 0;
    hooks.before = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
}

static void expect_no_more(void)
{
    PyInterpreterState *interpreter = known_codes.interpreter;
    if (!expected.is_on)
        return;
    expected.is_on = false;
    if (--hooks.expecting == 0 && _PyInterpreterState_GetEvalFrameFunc(interpreter) == evaluate)
        _PyInterpreterState_SetEvalFrameFunc(interpreter, hooks.before);
}

static bool is_named(PyObject *name, const char *wanted)
{
    return name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, wanted) == 0;
}

static bool is_expected(PyThreadState *state, frame *here)
{
    if (frame_running(state) != expected.outer)
        return false;
    if (expected.code)
        return (PyObject *)here->f_code == expected.code;
    return is_named(here->f_code->co_name, "<module>") && (!expected.is_main || is_named(module_of(here), "__main__"));
}

/* The interpreter's own way to run a module executes it by exec. */
static bool comes_by_exec(PyThreadState *state, frame *here)
{
    return expected.is_main && !frame_running(state) && is_named(here->f_code->co_name, "_run_module_as_main");
}

/* The frame has not begun: what it is to execute can be another code object with the same variables. */
static void put_code(frame *here)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyCodeObject *made = once_with_probes(here->f_code, here);
    PyErr_Restore(type, value, traceback);
    if (!made || here->prev_instr != _PyCode_CODE(here->f_code) - 1)
        return;
    Py_SETREF(here->f_code, (PyCodeObject *)Py_NewRef((PyObject *)made));
    here->prev_instr = _PyCode_CODE(made) - 1;
}

static PyObject *evaluate(PyThreadState *state, struct _PyInterpreterFrame *here, int throws)
{
    evaluation before = hooks.before;
    if (expected.is_on && !throws) {
        bool is_it = is_expected(state, here);
        if (is_it || comes_by_exec(state, here) || ++hooks.frames > MOST_FRAMES)
            expect_no_more();
        if (is_it && coverage.on)
            put_code(here);
    }
    return before(state, here, throws);
}

/* --- exec and eval */

static bool is_ours(void)
{
    return coverage.on && PyInterpreterState_Get() == known_codes.interpreter;
}

/* What is executed by the call that begins is expected; what was until now is returned. */
static struct expected expect_executed(PyObject *const *arguments, Py_ssize_t count)
{
    struct expected before = expected;
    frame *outer = frame_running(running_state());
    if (before.is_on)
        expect_no_more();
    expect((struct expected){true, false, count && PyCode_Check(arguments[0]) ? arguments[0] : NULL, outer});
    return before;
}

static void expect_as_before(struct expected before)
{
    expect_no_more();
    if (before.is_on)
        expect(before);
}

static PyObject *call_exec(PyObject *module, PyObject *const *arguments, Py_ssize_t count, PyObject *names)
{
    _PyCFunctionFastWithKeywords real = (_PyCFunctionFastWithKeywords)(void (*)(void))hooks.real_exec;
    if (!is_ours())
        return real(module, arguments, count, names);
    struct expected before = expect_executed(arguments, count);
    PyObject *result = real(module, arguments, count, names);
    expect_as_before(before);
    return result;
}

static PyObject *call_eval(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    _PyCFunctionFast real = (_PyCFunctionFast)(void (*)(void))hooks.real_eval;
    if (!is_ours())
        return real(module, arguments, count);
    struct expected before = expect_executed(arguments, count);
    PyObject *result = real(module, arguments, count);
    expect_as_before(before);
    return result;
}

/* The definition of a built-in function of these flags; NULL where it is another. Borrowed. */
static PyMethodDef *definition_of(const char *name, int flags)
{
    PyObject *builtins = PyEval_GetBuiltins(), *function = builtins ? PyDict_GetItemString(builtins, name) : NULL;
    if (!function || !PyCFunction_CheckExact(function))
        return NULL;
    PyMethodDef *definition = ((PyCFunctionObject *)function)->m_ml;
    return definition->ml_flags == flags && strcmp(definition->ml_name, name) == 0 ? definition : NULL;
}

static const char *hooks_begin(void)
{
    hooks.exec = definition_of("exec", METH_FASTCALL | METH_KEYWORDS);
    hooks.eval = definition_of("eval", METH_FASTCALL);
    if (!hooks.exec || !hooks.eval)
        return "exec or eval are not the interpreter's";
    hooks.real_exec = hooks.exec->ml_meth;
    hooks.real_eval = hooks.eval->ml_meth;
    hooks.exec->ml_meth = (PyCFunction)(void (*)(void))call_exec;
    hooks.eval->ml_meth = (PyCFunction)(void (*)(void))call_eval;
    return NULL;
}

static void hooks_end(void)
{
    expect_no_more();
    if (hooks.exec && hooks.exec->ml_meth == (PyCFunction)(void (*)(void))call_exec)
        hooks.exec->ml_meth = hooks.real_exec;
    if (hooks.eval && hooks.eval->ml_meth == (PyCFunction)(void (*)(void))call_eval)
        hooks.eval->ml_meth = hooks.real_eval;
}

/* --- functions that are there already */

static void put_code_in_function(PyObject *object)
{
    PyFunctionObject *function = (PyFunctionObject *)object;
    frame here = {.f_globals = function->func_globals};
    PyCodeObject *made = PyCode_Check(function->func_code) ? once_with_probes((PyCodeObject *)function->func_code, &here) : NULL;
    if (!made)
        return;
    function->func_version = 0; /* what calls were specialised on */
    Py_SETREF(function->func_code, Py_NewRef((PyObject *)made));
}

/* Functions of modules that were imported before; there are some to choose only where patterns are given. */
static void put_code_in_functions(void)
{
    PyObject *gc = known_codes.choices ? PyImport_ImportModule("gc") : NULL;
    PyObject *objects = gc ? PyObject_CallMethod(gc, "get_objects", NULL) : NULL;
    for (Py_ssize_t index = 0; objects && index < PyList_GET_SIZE(objects); index++)
        if (PyFunction_Check(PyList_GET_ITEM(objects, index)))
            put_code_in_function(PyList_GET_ITEM(objects, index));
    Py_XDECREF(objects);
    Py_XDECREF(gc);
    PyErr_Clear();
}

static bool has_main_begun(void)
{
    frame *here = frame_innermost(running_state()), *outermost = here;
    for (; here; here = frame_outer(here))
        outermost = here;
    return outermost && (is_named(module_of(outermost), "__main__") || is_named(module_of(outermost), "runpy"));
}

/* Have the events told; why not, or NULL. */
static const char *coverage_events_begin(void)
{
    if (!coverage.probes || coverage.contexts || coverage.branches)
        return coverage_trace_begin();
    if (!probes_begin())
        return "there is no place for probes";
    const char *why = hooks_begin();
    if (why) {
        probes_end();
        return why;
    }
    put_code_in_functions();
    if (!has_main_begun())
        expect((struct expected){true, true, NULL, NULL});
    return NULL;
}

/* Gives what was missed meanwhile, or NULL. */
static const char *coverage_events_end(void)
{
    if (!probing.on)
        return coverage_trace_end();
    hooks_end();
    probes_end();
    return probing.is_traced ? coverage_trace_end() : NULL;
}
