#include "coverage/probes.h"

#include "coverage/probed_code.h"

#if !HAS_MONITORING

#include <frameobject.h>

#include "coverage/coverage_trace.h"
#include "coverage/probe_arming.h"

static struct {
    bool on, owed;
    unaryfunc invert; /* the slots' previous content */
    richcmpfunc compare;
    PyNumberMethods *slots;
} probing;

/* The jump back from a stub looks to a trace function as if the line began a second time. Each has it once. */
static __thread struct {
    Py_tracefunc real;
    frame *frame;
    uint32_t unit, units;
} not_to_tell;

static int tell_all_but_that(PyObject *argument, PyFrameObject *object, int what, PyObject *given)
{
    PyThreadState *state = running_state();
    bool is_here = object->f_frame == not_to_tell.frame;
    uint32_t unit = (uint32_t)frame_instruction(object->f_frame);
    if (is_here && what == PyTrace_OPCODE && unit >= not_to_tell.units)
        return 0;
    if (state->c_tracefunc == tell_all_but_that)
        state->c_tracefunc = not_to_tell.real;
    if (is_here && what == PyTrace_LINE && unit == not_to_tell.unit)
        return 0;
    return not_to_tell.real(argument, object, what, given);
}

static void tell_not_twice(frame *here, uint32_t unit, uint32_t units)
{
    PyThreadState *state = running_state();
    if (LIKELY(!state->c_tracefunc) || !state->cframe->use_tracing || state->tracing)
        return;
    if (state->c_tracefunc != tell_all_but_that)
        not_to_tell.real = state->c_tracefunc;
    not_to_tell.frame = here;
    not_to_tell.unit = unit;
    not_to_tell.units = units;
    state->c_tracefunc = tell_all_but_that;
}

/* Arm again the probes that fired while recording was paused. */
static void arm_owed(void)
{
    probing.owed = false;
    for (struct known_code *each = covered_codes.first; each; each = each->next) {
        struct probes *probes = ((struct covered_code *)each)->probes;
        for (uint32_t index = 0; probes && index < probes->count; index++)
            if (probes->probe[index].is_owed) {
                probes->probe[index].is_owed = false;
                arm_again(each->code, probes, &probes->probe[index]);
            }
    }
}

/* What has no probes is traced from now on: from the middle of the line of the innermost frame. */
static void trace_from(const struct covered_code *known)
{
    coverage_trace_the_rest();
    PyFrameObject *object = needs_instructions(known->plan) ? PyEval_GetFrame() : NULL;
    if (object)
        object->f_trace_opcodes = 1;
    PyErr_Clear();
}

static void note_probe(struct covered_code *known, struct probe *probe, frame *here)
{
    if (UNLIKELY(recorder_paused())) {
        probe->is_owed = probing.owed = true;
        return;
    }
    if (UNLIKELY(probing.owed))
        arm_owed();
    for (uint32_t place = probe->place; place < probe->place + probe->places; place++)
        come_to(known, place, here);
    if (UNLIKELY(known->probes->is_incomplete && !coverage_is_rest_traced()))
        trace_from(known);
}

/* The probe that this frame is in, or NULL. */
static struct probe *probe_of(struct covered_code *known, frame *here)
{
    struct probes *probes = known ? known->probes : NULL;
    uint32_t unit = (uint32_t)frame_instruction(here);
    if (!probes || unit < probes->first_stub)
        return NULL;
    uint32_t index = (unit - probes->first_stub) / STUB_UNITS;
    return index < probes->count ? &probes->probe[index] : NULL;
}

/* ~ of a class: a stub's, or a program's, which is an error as ever. */
static PyObject *invert(PyObject *operand)
{
    frame *here = frame_running(running_state());
    struct covered_code *known = here && covered_codes.index >= 0 ? covered_code_known(here->f_code) : NULL;
    struct probe *probe = operand == PyExc_AssertionError && here ? probe_of(known, here) : NULL;
    if (probe) {
        disarm(here->f_code, probe);
        if (LIKELY(coverage.on))
            note_probe(known, probe, here);
        tell_not_twice(here, probe->unit, known->probes->first_stub);
        return Py_NewRef(Py_None);
    }
    if (probing.invert)
        return probing.invert(operand);
    PyErr_Format(PyExc_TypeError, "bad operand type for unary ~: '%.200s'", Py_TYPE(operand)->tp_name);
    return NULL;
}

/* --- equality: of code objects, that with probes is equal to that without */

/* The same code without probes where it has some. */
static PyObject *as_compiled(PyObject *object)
{
    PyCodeObject *code = (PyCodeObject *)object;
    struct covered_code *known = PyCode_Check(object) ? covered_code_known(code) : NULL;
    if (!known || !known->probes)
        return Py_NewRef(object);
    return (PyObject *)code_like(code, code->_co_code, code->co_consts, -known->probes->deeper);
}

static PyObject *compare_codes(PyObject *first, PyObject *second, int operation)
{
    if (first == second || !PyCode_Check(second))
        return probing.compare(first, second, operation);
    PyObject *one = as_compiled(first), *other = as_compiled(second);
    PyObject *result = one && other ? probing.compare(one, other, operation) : NULL;
    Py_XDECREF(one);
    Py_XDECREF(other);
    return result;
}

bool probes_begin(void)
{
    PyNumberMethods *slots = PyType_Type.tp_as_number;
    if (!slots || probing.on)
        return probing.on;
    probing.slots = slots;
    probing.invert = slots->nb_invert;
    probing.compare = PyCode_Type.tp_richcompare;
    slots->nb_invert = invert;
    PyCode_Type.tp_richcompare = compare_codes;
    probing.on = true;
    return true;
}

void probes_end(void)
{
    for (struct known_code *each = covered_codes.first; each; each = each->next) {
        struct probes *probes = ((struct covered_code *)each)->probes;
        for (uint32_t index = 0; probes && index < probes->count; index++)
            disarm(each->code, &probes->probe[index]);
    }
    if (probing.on && probing.slots->nb_invert == invert)
        probing.slots->nb_invert = probing.invert;
    if (probing.on && PyCode_Type.tp_richcompare == compare_codes)
        PyCode_Type.tp_richcompare = probing.compare;
    probing.on = false;
}

#endif
