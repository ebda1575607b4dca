#include "cpython/tasks.h"

#include <stdlib.h>

struct task {
    PyObject *coroutine; /* no reference */
    PyObject *reference; /* a weak one: another coroutine may have its address when it is no more */
    uint32_t number;
};

static struct {
    struct task *places;
    size_t size, used;
    uint32_t last;
} tasks;

static size_t place_of_task(const PyObject *coroutine)
{
    size_t place = ((uintptr_t)coroutine >> 4) * 0x9e3779b97f4a7c15u >> 20;
    while (tasks.places[place &= tasks.size - 1].reference && tasks.places[place].coroutine != coroutine)
        place++;
    return place;
}

void tasks_forget(void)
{
    for (size_t place = 0; place < tasks.size; place++)
        Py_XDECREF(tasks.places[place].reference);
    free(tasks.places);
    tasks.places = NULL;
    tasks.size = tasks.used = 0;
}

static bool task_lives(const struct task *task)
{
    return task->reference && ((PyWeakReference *)task->reference)->wr_object == task->coroutine;
}

/* Those that are no more make room; where all live, there is more room. */
static bool tasks_grow(void)
{
    struct task *old = tasks.places;
    size_t size = tasks.size, living = 0;
    for (size_t place = 0; place < size; place++)
        living += task_lives(&old[place]);
    size_t grown = living * 4 > size ? size * 2 : size;
    grown = grown ? grown : 256;
    struct task *places = calloc(grown, sizeof *places);
    if (!places)
        return false;
    tasks.places = places;
    tasks.size = grown;
    tasks.used = living;
    for (size_t place = 0; place < size; place++) {
        if (task_lives(&old[place]))
            places[place_of_task(old[place].coroutine)] = old[place];
        else
            Py_XDECREF(old[place].reference);
    }
    free(old);
    return true;
}

static struct task *task_find(const PyObject *outermost)
{
    struct task *task = tasks.size ? &tasks.places[place_of_task(outermost)] : NULL;
    return task && task_lives(task) ? task : NULL;
}

/* A weak reference, whatever is raised just now. Making one may run the collector of garbage, and so anything. */
static PyObject *reference_to(PyObject *outermost)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *reference = PyWeakref_NewRef(outermost, NULL);
    PyErr_Restore(type, value, traceback);
    return reference;
}

uint32_t number_of_task(PyObject *outermost)
{
    const struct task *known = task_find(outermost);
    if (LIKELY(known))
        return known->number;
    PyObject *reference = PyType_SUPPORTS_WEAKREFS(Py_TYPE(outermost)) ? reference_to(outermost) : NULL;
    bool has_room = reference && (tasks.used * 2 < tasks.size || tasks_grow());
    if (!has_room || (known = task_find(outermost))) {
        Py_XDECREF(reference);
        return has_room ? known->number : 0;
    }
    struct task *task = &tasks.places[place_of_task(outermost)];
    tasks.used += !task->reference;
    Py_XDECREF(task->reference);
    *task = (struct task){outermost, reference, ++tasks.last};
    return task->number;
}

PyObject *outermost_from(frame *inner, PyObject *awaited)
{
    PyObject *outermost = awaited;
    for (; inner && inner->owner == FRAME_OWNED_BY_GENERATOR; inner = frame_outer(inner))
        outermost = frame_generator(inner);
    return outermost;
}

enum { CALLS_OF_A_TASK = 64 }; /* between a call and the coroutine that it is made in */

static bool is_of_coroutine(frame *frame)
{
    return frame->owner == FRAME_OWNED_BY_GENERATOR &&
           (frame_code(frame)->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE));
}

uint32_t task_of_thread(const struct thread *thread)
{
    frame *inner = thread->in_loop ? frame_innermost(running_state()) : NULL;
    for (unsigned depth = 0; inner && depth < CALLS_OF_A_TASK && !is_of_coroutine(inner); depth++)
        inner = frame_outer(inner);
    PyObject *outermost = outermost_from(inner, NULL);
    return outermost ? number_of_task(outermost) : thread->greenlet;
}

void loop_runs(const PyObject *loop)
{
    struct thread *thread = recording();
    if (thread)
        thread->in_loop = loop && loop != Py_None;
}

uint32_t task_here(PyObject *awaited)
{
    return number_of_task(outermost_from(frame_innermost(running_state()), awaited));
}
