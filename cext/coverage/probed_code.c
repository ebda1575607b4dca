#include "coverage/probed_code.h"

#if !HAS_MONITORING

#include <stdlib.h>
#include <string.h>

#include "coverage/coverage_trace.h"
#include "coverage/probe_arming.h"

/* Instructions as they are shown, with unseen room behind them: CPython takes its length from the code object. */
static PyObject *shown_code(PyObject *compiled, Py_ssize_t bytes)
{
    PyObject *shown = PyBytes_FromStringAndSize(NULL, bytes);
    if (!shown)
        return NULL;
    Py_ssize_t used = PyBytes_GET_SIZE(compiled);
    memset(PyBytes_AS_STRING(shown), 0, (size_t)bytes);
    memcpy(PyBytes_AS_STRING(shown), PyBytes_AS_STRING(compiled), (size_t)used);
    Py_SET_SIZE(shown, used);
    return shown;
}

/* The lines by instruction that tracing looks at: none in stubs. */
static bool put_lines(PyCodeObject *code, const struct bytecode *of)
{
    int *lines = PyMem_Malloc((size_t)Py_SIZE(code) * sizeof *lines);
    if (!lines)
        return false;
    for (Py_ssize_t unit = 0; unit < Py_SIZE(code); unit++)
        lines[unit] = unit < (Py_ssize_t)of->units ? of->lines[unit] : -1;
    code->_co_linearray = (char *)lines;
    code->_co_linearray_entry_size = sizeof *lines;
    return true;
}

PyCodeObject *code_like(PyCodeObject *of, PyObject *instructions, PyObject *consts, int deeper)
{
    struct _PyCodeConstructor like = {
        .filename = of->co_filename,
        .name = of->co_name,
        .qualname = of->co_qualname,
        .flags = of->co_flags,
        .code = instructions,
        .firstlineno = of->co_firstlineno,
        .linetable = of->co_linetable,
        .consts = consts,
        .names = of->co_names,
        .localsplusnames = of->co_localsplusnames,
        .localspluskinds = of->co_localspluskinds,
        .argcount = of->co_argcount,
        .posonlyargcount = of->co_posonlyargcount,
        .kwonlyargcount = of->co_kwonlyargcount,
        .stacksize = of->co_stacksize + deeper,
        .exceptiontable = of->co_exceptiontable,
    };
    return _PyCode_New(&like);
}

static PyObject *instructions_with_stubs(PyObject *compiled, const struct probes *probes)
{
    Py_ssize_t used = PyBytes_GET_SIZE(compiled);
    PyObject *all = PyBytes_FromStringAndSize(NULL, used + (Py_ssize_t)(probes->count * STUB_UNITS * 2));
    if (!all)
        return NULL;
    _Py_CODEUNIT *units = (_Py_CODEUNIT *)PyBytes_AS_STRING(all);
    memcpy(units, PyBytes_AS_STRING(compiled), (size_t)used);
    for (uint32_t index = 0; index < probes->count; index++) {
        uint32_t unit = probes->first_stub + index * STUB_UNITS;
        put_stub(units + unit, unit, probes->probe[index].unit);
    }
    return all;
}

/* A stack on the heap has exactly the room that it needs; in the thread's there is always some behind. */
static bool has_own_stack(const PyCodeObject *code)
{
    return code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR);
}

/* The same code with stubs, not armed yet. */
static PyCodeObject *code_with_stubs(PyCodeObject *of, PyObject *consts, const struct bytecode *code,
                                     struct probes *probes)
{
    probes->deeper = probes->lacks_room && has_own_stack(of);
    PyObject *compiled = PyCode_GetCode(of);
    PyObject *all = compiled ? instructions_with_stubs(compiled, probes) : NULL;
    PyCodeObject *made = all ? code_like(of, all, consts, probes->deeper) : NULL;
    PyObject *shown = made ? shown_code(compiled, PyBytes_GET_SIZE(all)) : NULL;
    Py_XDECREF(compiled);
    Py_XDECREF(all);
    if (!shown || !put_lines(made, code)) {
        Py_XDECREF(shown);
        Py_CLEAR(made);
    } else {
        made->_co_code = shown;
    }
    return made;
}

/* Put the plan and the probes into the code object's data, and arm the probes. */
static bool begin_probes(PyCodeObject *made, struct covered_plan *plan, struct probes *probes, frame *here)
{
    struct covered_code *known = covered_code_of(made, here);
    if (!known)
        return false;
    known->plan = plan;
    known->probes = probes;
    for (uint32_t index = 0; index < probes->count; index++)
        arm(made, probes, &probes->probe[index]);
    if (probes->is_late)
        coverage_trace_the_rest();
    return true;
}

/* The same code with other constants. */
static PyCodeObject *unprobed(PyCodeObject *of, PyObject *consts)
{
    PyObject *compiled = PyCode_GetCode(of);
    PyCodeObject *made = compiled ? code_like(of, compiled, consts, 0) : NULL;
    Py_XDECREF(compiled);
    return made;
}

/* NULL if there is nothing to be put. */
static struct probes *probes_of(const struct bytecode *code, const struct covered_plan *plan)
{
    struct probes *probes = plan && plan->places ? probes_laid_out(code, plan) : NULL;
    if (!probes || probes->count)
        return probes;
    if (probes->is_incomplete)
        coverage_trace_the_rest();
    free(probes);
    return NULL;
}

static PyCodeObject *probed(PyCodeObject *of, PyObject *consts, frame *here)
{
    struct bytecode code;
    struct covered_plan *plan = bytecode_read(&code, of) ? covered_plan_of(&code) : NULL;
    struct probes *probes = probes_of(&code, plan);
    PyCodeObject *made = probes ? code_with_stubs(of, consts, &code, probes) : NULL;
    bytecode_free(&code);
    if (made && begin_probes(made, plan, probes, here))
        return made;
    covered_plan_free(plan);
    free(probes);
    Py_CLEAR(made);
    return consts != of->co_consts ? unprobed(of, consts) : NULL;
}

static PyCodeObject *with_probes(PyCodeObject *of, frame *here);

static PyObject *copied(PyObject *consts)
{
    Py_ssize_t count = PyTuple_GET_SIZE(consts);
    PyObject *copy = PyTuple_New(count);
    for (Py_ssize_t index = 0; copy && index < count; index++)
        PyTuple_SET_ITEM(copy, index, Py_NewRef(PyTuple_GET_ITEM(consts, index)));
    return copy;
}

/* The constants, with probes in the chosen code objects among them; the same object if there is none. */
static PyObject *consts_with_probes(PyCodeObject *of, frame *here)
{
    PyObject *consts = of->co_consts, *changed = NULL;
    for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(consts); index++) {
        PyObject *each = PyTuple_GET_ITEM(consts, index);
        PyCodeObject *made = PyCode_Check(each) ? with_probes((PyCodeObject *)each, here) : NULL;
        if (!made)
            continue;
        changed = changed ? changed : copied(consts);
        if (!changed) {
            Py_DECREF(made);
            break;
        }
        PyTuple_SET_ITEM(changed, index, (PyObject *)made);
        Py_DECREF(each);
    }
    return changed ? changed : Py_NewRef(consts);
}

/* The same code with probes, if it or code inside it is chosen; NULL if nothing is. */
static PyCodeObject *with_probes(PyCodeObject *of, frame *here)
{
    PyObject *consts = consts_with_probes(of, here);
    bool own = is_own_code(of, here);
    bool chosen = is_chosen_code(&covered_codes, of, here, own);
    PyCodeObject *made = chosen ? probed(of, consts, here) : consts != of->co_consts ? unprobed(of, consts) : NULL;
    PyErr_Clear();
    Py_DECREF(consts);
    return made;
}

PyCodeObject *once_with_probes(PyCodeObject *of, frame *here)
{
    struct covered_code *known = covered_code_of(of, here);
    if (!known || known->probes)
        return NULL;
    if (known->looked_at != covered_codes.choice.serial) {
        known->looked_at = covered_codes.choice.serial;
        Py_XSETREF(known->with_probes, with_probes(of, here));
    }
    return known->with_probes;
}

#endif
