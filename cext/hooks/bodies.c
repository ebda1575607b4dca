#include "hooks/bodies.h"

#include "hooks/awaits.h"
#include "hooks/carried_transactions.h"
#include "hooks/hot_path.h"
#include "hooks/lock_passing.h"
#include "hooks/passed_environment.h"
#include "hooks/wrapper.h"

static PyObject *time_pair(struct slot *self, PyObject *owner, PyObject *argument)
{
    pair_function real = (pair_function)self->real;
    struct call call;
    if (!begin_pair(&call, self, owner, &argument))
        return real(owner, argument);
    PyObject *result = real(owner, argument);
    shim_end(&call, result, !result);
    return result;
}

static PyObject *time_triple(struct slot *self, PyObject *owner, PyObject *arguments, PyObject *keywords)
{
    triple_function real = (triple_function)self->real;
    struct call call;
    if (!begin_tuple(&call, self, owner, arguments, keywords))
        return real(owner, arguments, keywords);
    PyObject *result = real(owner, arguments, keywords);
    shim_end(&call, result, !result);
    return result;
}

static PyObject *time_fast(struct slot *self, PyObject *owner, PyObject *const *arguments, Py_ssize_t count)
{
    fast_function real = (fast_function)self->real;
    struct call call;
    if (!shim_begin(&call, self, owner, arguments, count, NULL))
        return real(owner, arguments, count);
    PyObject *result = real(owner, arguments, count);
    shim_end(&call, result, !result);
    return result;
}

static PyObject *time_fast_keywords(struct slot *self, PyObject *owner, PyObject *const *arguments, Py_ssize_t count,
                                    PyObject *names)
{
    fast_keywords_function real = (fast_keywords_function)self->real;
    struct call call;
    if (!shim_begin(&call, self, owner, arguments, count, names))
        return real(owner, arguments, count, names);
    PyObject *result = real(owner, arguments, count, names);
    shim_end(&call, result, !result);
    return result;
}

static PyObject *time_method(struct slot *self, PyObject *owner, PyTypeObject *type, PyObject *const *arguments,
                             size_t count, PyObject *names)
{
    method_function real = (method_function)self->real;
    struct call call;
    if (!shim_begin(&call, self, owner, arguments, (Py_ssize_t)count, names))
        return real(owner, type, arguments, count, names);
    PyObject *result = real(owner, type, arguments, count, names);
    shim_end(&call, result, !result);
    return result;
}

static PyObject *time_vector(struct slot *self, PyObject *function, PyObject *const *arguments, size_t flags,
                             PyObject *names)
{
    vector_function real = (vector_function)self->real;
    struct call call;
    if (!begin_vector(&call, self, function, arguments, flags, names))
        return real(function, arguments, flags, names);
    PyObject *result = real(function, arguments, flags, names);
    shim_end(&call, result, !result);
    return result;
}

PyObject *time_awaited(struct slot *self, PyObject *function, PyObject *const *arguments, size_t flags, PyObject *names)
{
    vector_function real = (vector_function)self->real;
    struct call call;
    if (!begin_vector(&call, self, function, arguments, flags, names))
        return real(function, arguments, flags, names);
    PyObject *result = real(function, arguments, flags, names);
    shim_end_or_await(&call, result);
    return result;
}

PyObject *time_wrapped(PyObject *wrapper, PyObject *const *arguments, size_t flags, PyObject *names)
{
    PyObject *real = wrapper_real(wrapper);
    if (!real)
        return NULL;
    struct call call;
    bool is_timed = begin_vector(&call, wrapper_slot(wrapper), wrapper, arguments, flags, names);
    PyObject *result = PyObject_Vectorcall(real, arguments, flags, names);
    if (is_timed)
        shim_end_or_await(&call, result);
    Py_DECREF(real);
    return result;
}

/* tp_iternext gives NULL without an exception at the end: that is no error. */
static PyObject *time_unary(struct slot *self, PyObject *owner)
{
    unary_function real = (unary_function)self->real;
    struct call call;
    if (!shim_begin(&call, self, owner, NULL, 0, NULL))
        return real(owner);
    PyObject *result = real(owner);
    shim_end(&call, result, !result && PyErr_Occurred());
    return result;
}

static int time_initialise(struct slot *self, PyObject *owner, PyObject *arguments, PyObject *keywords)
{
    initialise_function real = (initialise_function)self->real;
    struct call call;
    if (!begin_tuple(&call, self, owner, arguments, keywords))
        return real(owner, arguments, keywords);
    int result = real(owner, arguments, keywords);
    shim_end(&call, NULL, result < 0);
    return result;
}

static void time_finish(struct slot *self, PyObject *owner)
{
    finish_function real = (finish_function)self->real;
    struct call call;
    bool is_timed = shim_begin(&call, self, owner, NULL, 0, NULL);
    real(owner);
    if (is_timed)
        shim_end(&call, NULL, false);
}

#define BODY_OF_SIGNATURE(name, ...) [SIGNATURE_##name] = (void *)time_##name,
void *const bodies[SIGNATURE_COUNT] = {SIGNATURES(BODY_OF_SIGNATURE)};

static PyObject *take_pair(struct slot *self, PyObject *lock, PyObject *argument)
{
    PyThreadState *state = recorded_state();
    struct thread *thread = lock_passes(self, lock, state, NULL, NULL);
    PyObject *result = thread ? ((pair_function)self->real)(lock, argument) : time_pair(self, lock, argument);
    lock_done(self, lock, state, thread, result);
    return result;
}

static PyObject *take_triple(struct slot *self, PyObject *lock, PyObject *arguments, PyObject *keywords)
{
    PyThreadState *state = recorded_state();
    struct thread *thread = lock_passes(self, lock, state, first_of(arguments), keywords);
    PyObject *result = thread ? ((triple_function)self->real)(lock, arguments, keywords)
                              : time_triple(self, lock, arguments, keywords);
    lock_done(self, lock, state, thread, result);
    return result;
}

static PyObject *take_fast_keywords(struct slot *self, PyObject *lock, PyObject *const *arguments, Py_ssize_t count,
                                    PyObject *names)
{
    PyThreadState *state = recorded_state();
    struct thread *thread = lock_passes(self, lock, state, count ? arguments[0] : NULL, NULL);
    PyObject *result = thread ? ((fast_keywords_function)self->real)(lock, arguments, count, names)
                              : time_fast_keywords(self, lock, arguments, count, names);
    lock_done(self, lock, state, thread, result);
    return result;
}

void *const takers[SIGNATURE_COUNT] = {
    [SIGNATURE_pair] = (void *)take_pair,
    [SIGNATURE_triple] = (void *)take_triple,
    [SIGNATURE_fast_keywords] = (void *)take_fast_keywords,
};

/* A program with coroutines calls it at every step: few of the contexts carry anything. */
static PyObject *run_fast_keywords(struct slot *self, PyObject *context, PyObject *const *arguments, Py_ssize_t count,
                                   PyObject *names)
{
    if (LIKELY(!may_carry(context)))
        return ((fast_keywords_function)self->real)(context, arguments, count, names);
    return time_fast_keywords(self, context, arguments, count, names);
}

void *const runners[SIGNATURE_COUNT] = {[SIGNATURE_fast_keywords] = (void *)run_fast_keywords};

static PyObject *pass_pair(struct slot *self, PyObject *module, PyObject *arguments)
{
    struct passed passed;
    PyObject *result = time_pair(self, module, pass_tuple(&passed, self, arguments));
    pass_end(&passed, self);
    return result;
}

static PyObject *pass_fast(struct slot *self, PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    struct passed passed;
    PyObject *result = time_fast(self, module, pass_items(&passed, self, arguments, count, NULL), count);
    pass_end(&passed, self);
    return result;
}

static PyObject *pass_fast_keywords(struct slot *self, PyObject *module, PyObject *const *arguments, Py_ssize_t count,
                                    PyObject *names)
{
    struct passed passed;
    PyObject *const *given = pass_items(&passed, self, arguments, count, names);
    PyObject *result = time_fast_keywords(self, module, given, count, names);
    pass_end(&passed, self);
    return result;
}

void *const passers[SIGNATURE_COUNT] = {
    [SIGNATURE_pair] = (void *)pass_pair,
    [SIGNATURE_fast] = (void *)pass_fast,
    [SIGNATURE_fast_keywords] = (void *)pass_fast_keywords,
};
