#include "coverage/expected_code.h"

#include <string.h>

#include "coverage/probed_code.h"

#if !HAS_MONITORING

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
    PyInterpreterState *interpreter = covered_codes.interpreter;
    expected = what;
    if (!what.is_on || hooks.expecting++)
        return;
    hooks.frames = 0;
    hooks.before = _PyInterpreterState_GetEvalFrameFunc(interpreter);
    _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate);
}

static void expect_no_more(void)
{
    PyInterpreterState *interpreter = covered_codes.interpreter;
    if (!expected.is_on)
        return;
    expected.is_on = false;
    if (--hooks.expecting == 0 && _PyInterpreterState_GetEvalFrameFunc(interpreter) == evaluate)
        _PyInterpreterState_SetEvalFrameFunc(interpreter, hooks.before);
}

bool is_named(PyObject *name, const char *wanted)
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

/* The frame has not begun: it can be made to execute another code object with the same variables. */
static void put_code(frame *here)
{
    struct raised raised = raised_keep();
    PyCodeObject *made = once_with_probes(here->f_code, here);
    raised_restore(raised);
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
    return coverage.on && PyInterpreterState_Get() == covered_codes.interpreter;
}

/* Expect what the beginning call executes; returns what was expected before. */
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

/* The definition of a built-in function of these flags; NULL if it is another. Borrowed. */
static PyMethodDef *definition_of(const char *name, int flags)
{
    PyObject *builtins = PyEval_GetBuiltins(), *function = builtins ? PyDict_GetItemString(builtins, name) : NULL;
    if (!function || !PyCFunction_CheckExact(function))
        return NULL;
    PyMethodDef *definition = ((PyCFunctionObject *)function)->m_ml;
    return definition->ml_flags == flags && strcmp(definition->ml_name, name) == 0 ? definition : NULL;
}

const char *expecting_begin(void)
{
    hooks.exec = definition_of("exec", METH_FASTCALL | METH_KEYWORDS);
    hooks.eval = definition_of("eval", METH_FASTCALL);
    if (!hooks.exec || !hooks.eval)
        return "exec or eval has been replaced";
    hooks.real_exec = hooks.exec->ml_meth;
    hooks.real_eval = hooks.eval->ml_meth;
    hooks.exec->ml_meth = (PyCFunction)(void (*)(void))call_exec;
    hooks.eval->ml_meth = (PyCFunction)(void (*)(void))call_eval;
    return NULL;
}

void expecting_end(void)
{
    expect_no_more();
    if (hooks.exec && hooks.exec->ml_meth == (PyCFunction)(void (*)(void))call_exec)
        hooks.exec->ml_meth = hooks.real_exec;
    if (hooks.eval && hooks.eval->ml_meth == (PyCFunction)(void (*)(void))call_eval)
        hooks.eval->ml_meth = hooks.real_eval;
}

void expect_main(void)
{
    expect((struct expected){true, true, NULL, NULL});
}

#endif
