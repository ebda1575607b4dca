#include "cpython/tasks.h"

#include <stdlib.h>

#include "cpython/attributes.h"
#include "cpython/side_lock.h"
#include "cpython/sites.h"
#include "cpython/task_names.h"

/* A task keeps its entry after its coroutine is gone: the next coroutine at that address takes it, with another
   identity. So do other objects that are recognised later. */
struct task {
    PyObject *coroutine; /* no reference */
    uint32_t identity;   /* 0: it is gone */
    uint32_t number;     /* as a task; 0: none has been asked for */
    uint32_t freed_by;   /* the thread that is just freeing it, or 0 */
};

static struct {
    struct task *places;
    size_t size, used;
    uint32_t last, identities;
} tasks;

static size_t place_of_task(const PyObject *coroutine)
{
    size_t place = ((uintptr_t)coroutine >> 4) * 0x9e3779b97f4a7c15u >> 20;
    while (tasks.places[place &= tasks.size - 1].coroutine && tasks.places[place].coroutine != coroutine)
        place++;
    return place;
}

static struct task *task_find(const PyObject *outermost)
{
    struct task *task = tasks.size ? &tasks.places[place_of_task(outermost)] : NULL;
    return task && task->identity ? task : NULL;
}

/* Dead ones make room; if all are alive, the table grows. */
static bool tasks_grow(void)
{
    struct task *old = tasks.places;
    size_t size = tasks.size, living = 0;
    for (size_t place = 0; place < size; place++)
        living += old[place].identity != 0;
    size_t grown = living * 4 > size ? size * 2 : size;
    grown = grown ? grown : 256;
    struct task *places = calloc(grown, sizeof *places);
    if (!places)
        return false;
    tasks.places = places;
    tasks.size = grown;
    tasks.used = living;
    for (size_t place = 0; place < size; place++)
        if (old[place].identity)
            places[place_of_task(old[place].coroutine)] = old[place];
    free(old);
    return true;
}

/* --- their ends

   A weak reference would tell them, and the program could count it. So what frees an object of the type is replaced: of
   the type that all others are made from, for theirs call it in the end, and it may be asked by what a type is made. */

enum { TYPES = 9 }; /* coroutines, generators, asynchronous ones, greenlets, contexts, and those of compiled modules */

static struct freed {
    PyTypeObject *type;
    destructor real; /* stays known: a type that was made meanwhile may have taken ours over */
    bool is_ours;
} freed[TYPES];
static PyInterpreterState *recorded; /* types are the same in all interpreters, the table is of this one */

static PyTypeObject *root_of(PyTypeObject *type)
{
    while (type->tp_base && type->tp_base != &PyBaseObject_Type)
        type = type->tp_base;
    return type;
}

static struct freed *freed_of(const PyTypeObject *type)
{
    struct freed *each = freed;
    while (each < freed + TYPES && each->type && each->type != type)
        each++;
    return each < freed + TYPES ? each : NULL;
}

/* Threads that do not record make no tasks, but may free them. */
static uint32_t this_thread(void)
{
    return current_thread ? current_thread->number : UINT32_MAX;
}

static struct task *task_freed(const PyObject *object)
{
    return tasks.size && running_state()->interp == recorded ? task_find(object) : NULL;
}

/* Another thread that finds another coroutine at the address meanwhile gives that a number of its own. */
static void task_begins_to_end(const PyObject *object)
{
    if (!side_begin(SIDE_TASKS))
        return;
    struct task *task = task_freed(object);
    if (task)
        task->freed_by = this_thread();
    side_end(SIDE_TASKS);
}

static void task_ends(const PyObject *object)
{
    if (!side_begin(SIDE_TASKS))
        return;
    struct task *task = task_freed(object);
    if (task && (!IS_FREE_THREADED || task->freed_by == this_thread()))
        task->identity = 0;
    side_end(SIDE_TASKS);
}

/* Afterwards: code that it closes still runs as that task. */
static void free_task(PyObject *object)
{
    const struct freed *known = freed_of(root_of(Py_TYPE(object)));
    if (IS_FREE_THREADED)
        task_begins_to_end(object);
    known->real(object);
    task_ends(object);
}

/* A class that derives from another built-in type, such as dict, and from a coroutine's has that type as its root: for all dicts the
   interpreter would no longer see that what frees them is their own, and free nested ones in recursion. */
static bool is_root_of_tasks(const PyTypeObject *root)
{
    bool is_awaited = root->tp_as_async; /* generators and coroutines, those of Cython too */
    return is_awaited || root == &PyContext_Type || strcmp(root->tp_name, "greenlet.greenlet") == 0;
}

/* Whether the end of objects of this type will be noticed. Not if Python code made the type: what frees its objects
   finds the type by its own address. */
static bool tells_end(PyTypeObject *type)
{
    PyTypeObject *root = root_of(type);
    struct freed *known = freed_of(root);
    if (!known || (root->tp_flags & Py_TPFLAGS_HEAPTYPE) || !is_root_of_tasks(root))
        return false;
    if (!known->is_ours) {
        *known = (struct freed){root, known->type ? known->real : root->tp_dealloc, true};
        recorded = running_state()->interp;
        __atomic_store_n(&root->tp_dealloc, free_task, __ATOMIC_RELEASE);
    }
    return true;
}

void tasks_forget(void)
{
    for (struct freed *each = freed; each < freed + TYPES && each->type; each++) {
        if (each->is_ours && each->type->tp_dealloc == free_task)
            each->type->tp_dealloc = each->real;
        each->is_ours = false;
    }
    if (!side_begin(SIDE_TASKS))
        return;
    free(tasks.places);
    tasks.places = NULL;
    tasks.size = tasks.used = 0;
    side_end(SIDE_TASKS);
}

/* A coroutine that another thread is just freeing is not the one that is at its address now. */
static bool is_of_now(const struct task *task)
{
    return !IS_FREE_THREADED || !task->freed_by || task->freed_by == this_thread();
}

/* NULL if there is no room, or if the end of the task would not be noticed. */
static struct task *task_add(PyObject *object)
{
    if (!tells_end(Py_TYPE(object)) || (tasks.used * 2 >= tasks.size && !tasks_grow()))
        return NULL;
    struct task *task = &tasks.places[place_of_task(object)];
    tasks.used += !task->coroutine;
    if (++tasks.identities == 0)
        tasks.identities = 1;
    *task = (struct task){.coroutine = object, .identity = tasks.identities};
    return task;
}

static struct task *find_or_add(PyObject *object)
{
    struct task *known = task_find(object);
    return known && is_of_now(known) ? known : task_add(object);
}

uint32_t number_of_task(PyObject *outermost)
{
    if (!side_begin(SIDE_TASKS))
        return 0;
    struct task *task = find_or_add(outermost);
    bool is_new = task && !task->number;
    if (is_new)
        task->number = ++tasks.last;
    uint32_t number = task ? task->number : 0;
    side_end(SIDE_TASKS);
    if (UNLIKELY(is_new))
        learn_task_name(number, outermost);
    return number;
}

uint32_t object_watch(PyObject *object)
{
    if (!side_begin(SIDE_TASKS))
        return 0;
    const struct task *task = find_or_add(object);
    uint32_t identity = task ? task->identity : 0;
    side_end(SIDE_TASKS);
    return identity;
}

bool object_lives(const PyObject *object, uint32_t identity)
{
    if (!side_begin(SIDE_TASKS))
        return false;
    const struct task *task = task_find(object);
    bool lives = task && task->identity == identity && is_of_now(task);
    side_end(SIDE_TASKS);
    return lives;
}

static bool is_of_coroutine(frame *frame)
{
    return frame_is_of_generator(frame) &&
           (frame_code(frame)->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE));
}

static frame *outermost_coroutine(frame *inner)
{
    frame *outermost = NULL;
    for (; inner && frame_is_of_generator(inner); inner = frame_outer(inner))
        if (is_of_coroutine(inner))
            outermost = inner;
    return outermost;
}

PyObject *outermost_from(frame *inner, PyObject *awaited)
{
    frame *outermost = NULL;
    for (frame *each = inner; each && frame_is_of_generator(each); each = frame_outer(each))
        outermost = each;
    if (outermost && UNLIKELY(!is_of_coroutine(outermost))) /* a loop that is a generator itself, as trio's is */
        outermost = outermost_coroutine(inner);
    return outermost ? frame_generator(outermost) : awaited;
}

enum { CALLS_OF_A_TASK = 64 }; /* between a call and the coroutine in which it is made */

PyObject *outermost_here(void)
{
    PyThreadState *state = recorded_state();
    frame *inner = state ? frame_innermost(state) : NULL;
    for (unsigned depth = 0; inner && depth < CALLS_OF_A_TASK && !is_of_coroutine(inner); depth++)
        inner = frame_outer(inner);
    return outermost_from(inner, NULL);
}

uint32_t task_of_thread(const struct thread *thread)
{
    PyObject *outermost = thread->in_loop ? outermost_here() : NULL;
    return outermost ? number_of_task(outermost) : thread->greenlet;
}

static PyObject *running_tasks; /* no reference: the module has one */

PyObject *const *find_running_tasks(void)
{
    PyObject *found = entry_of_module("_asyncio", "_current_tasks");
    running_tasks = found && PyDict_CheckExact(found) ? found : NULL;
    return &running_tasks;
}

void loop_runs(const PyObject *loop)
{
    find_running_tasks();
    struct thread *thread = recording();
    if (thread)
        thread->in_loop = loop && loop != Py_None;
}

/* Every loop sets these hooks while it runs, also one that does not announce itself to asyncio, such as trio's. */
void loop_hooks_are_set(void)
{
    struct thread *thread = recording();
    if (thread)
        thread->in_loop = running_state()->async_gen_firstiter != NULL;
}

uint32_t task_here(PyObject *awaited)
{
    return number_of_task(outermost_from(frame_innermost(running_state()), awaited));
}
