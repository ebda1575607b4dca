#include "hooks/passed_environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/child_variables.h"
#include "core/clock.h"
#include "core/follow.h"
#include "core/recorder.h"
#include "cpython/side_lock.h"
#include "cpython/sites.h"
#include "hooks/call.h"
#include "hooks/child_environment.h"
#include "hooks/started_program.h"

/* --- the process's own environment, where no other can be given */

static char **array_of(PyObject *list)
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    size_t bytes = 0;
    for (Py_ssize_t place = 0; place < count; place++)
        bytes += (size_t)PyBytes_GET_SIZE(PyList_GET_ITEM(list, place)) + 1;
    char **array = malloc(((size_t)count + 1) * sizeof *array + bytes);
    char *text = array ? (char *)(array + count + 1) : NULL;
    for (Py_ssize_t place = 0; array && place < count; place++) {
        PyObject *item = PyList_GET_ITEM(list, place);
        array[place] = memcpy(text, PyBytes_AS_STRING(item), (size_t)PyBytes_GET_SIZE(item) + 1);
        text += PyBytes_GET_SIZE(item) + 1;
    }
    if (array)
        array[count] = NULL;
    return array;
}

static void change_own(struct passed *passed)
{
    passed->own = array_of(passed->environment);
    if (!passed->own || !side_begin(SIDE_ENVIRONMENT))
        return;
    passed->before = environ;
    environ = passed->own;
    side_end(SIDE_ENVIRONMENT);
}

/* What a shell was given stays, because it lacked what the program took out; but not our library, which is for the shell alone. */
static void change_back(struct passed *passed, const struct slot *slot)
{
    if ((slot->passes == PASSES_shell && !passed->preload) || !side_begin(SIDE_ENVIRONMENT))
        return;
    bool is_ours = environ == passed->own;
    if (is_ours)
        environ = passed->before;
    side_end(SIDE_ENVIRONMENT);
    if (is_ours)
        free(passed->own);
}

/* --- the call */

static bool is_called(PyObject *text, const char *name)
{
    return PyUnicode_Check(text) && PyUnicode_CompareWithASCIIString(text, name) == 0;
}

/* Where among the arguments the environment is; -1 if it is not. */
static Py_ssize_t place_of_environment(const struct slot *slot, Py_ssize_t count, PyObject *names)
{
    Py_ssize_t place = slot->passes == PASSES_list ? 5 : 2;
    if (place < count)
        return place;
    for (Py_ssize_t name = 0; names && name < PyTuple_GET_SIZE(names); name++)
        if (is_called(PyTuple_GET_ITEM(names, name), "env"))
            return count + name;
    return -1;
}

static bool is_own_environment(const struct slot *slot)
{
    return slot->passes == PASSES_own || slot->passes == PASSES_shell;
}

/* Find the replacement to pass on; false: none. */
static bool find_passed(struct passed *passed, const struct slot *slot, PyObject *const *items, Py_ssize_t count,
                        PyObject *names, Py_ssize_t *place)
{
    *passed = (struct passed){0};
    if (!recorded_state() || !variables() || count + (names ? PyTuple_GET_SIZE(names) : 0) > PASSED_ITEMS)
        return false;
    *place = is_own_environment(slot) ? -1 : place_of_environment(slot, count, names);
    if (!is_own_environment(slot) && *place < 0)
        return false;
    PyObject *given = *place < 0 ? Py_None : items[*place];
    passed->preload = !follow_is_off() && program_needs_preload(slot, items, count, given);
    if (given == Py_None && !passed->preload && own_is_complete() && own_tells_fate())
        return false;
    passed->environment = environment_for_child(given, (enum passes)slot->passes, passed->preload);
    return passed->environment != NULL;
}

/* The same, as recording's own time. */
static bool prepare(struct passed *passed, const struct slot *slot, PyObject *const *items, Py_ssize_t count,
                    PyObject *names, Py_ssize_t *place)
{
    struct thread *thread = recorded_state() ? recording() : NULL;
    struct reading begin = {0, 0};
    if (thread)
        begin = own_begin(thread);
    bool found = find_passed(passed, slot, items, count, names, place);
    if (thread)
        own_end(thread, begin);
    return found;
}

PyObject *const *pass_items(struct passed *passed, const struct slot *slot, PyObject *const *items, Py_ssize_t count,
                            PyObject *names)
{
    Py_ssize_t place;
    if (!prepare(passed, slot, items, count, names, &place))
        return items;
    if (is_own_environment(slot)) {
        change_own(passed);
        return items;
    }
    memcpy(passed->items, items, (size_t)(count + (names ? PyTuple_GET_SIZE(names) : 0)) * sizeof *items);
    passed->items[place] = passed->environment;
    return passed->items;
}

PyObject *pass_tuple(struct passed *passed, const struct slot *slot, PyObject *arguments)
{
    PyObject *const *items = items_of(arguments);
    PyObject *const *ours = items ? pass_items(passed, slot, items, count_of(arguments), NULL) : NULL;
    if (!items)
        *passed = (struct passed){0};
    if (ours == items)
        return arguments;
    passed->tuple = PyTuple_New(count_of(arguments));
    for (Py_ssize_t place = 0; passed->tuple && place < count_of(arguments); place++)
        PyTuple_SET_ITEM(passed->tuple, place, Py_NewRef(ours[place]));
    PyErr_Clear();
    return passed->tuple ? passed->tuple : arguments;
}

void pass_end(struct passed *passed, const struct slot *slot)
{
    if (passed->own)
        change_back(passed, slot);
    Py_XDECREF(passed->tuple);
    Py_XDECREF(passed->environment);
}
