/* A call that starts a program passes on what the child needs to be recorded, in an environment of its own: a copy of
   the one that was given. What the program has is never changed; what cannot be understood is passed on as it is. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "core/transaction_sampling.h"
#include "core/follow.h"
#include "core/child_variables.h"
#include "hooks/command.h"

enum { PASSED_ITEMS = 40 };

/* What is passed on in the place of what was given; to be undone after the call. */
struct passed {
    PyObject *items[PASSED_ITEMS];
    PyObject *environment;
    PyObject *tuple;
    char **own, **before; /* the process's own environment for the time of the call */
};

/* --- environments: a list of bytes, or a dictionary */

static bool is_list_of_bytes(PyObject *list)
{
    if (!PyList_CheckExact(list))
        return false;
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(list); place++)
        if (!PyBytes_CheckExact(PyList_GET_ITEM(list, place)))
            return false;
    return true;
}

static Py_ssize_t place_in_list(PyObject *list, const char *name)
{
    size_t bytes = strlen(name);
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(list); place++) {
        const char *text = PyBytes_AS_STRING(PyList_GET_ITEM(list, place));
        if (strncmp(text, name, bytes) == 0 && text[bytes] == '=')
            return place;
    }
    return -1;
}

/* The key under which a dictionary has the name, a new reference; NULL where it has not, or with an exception set. */
static PyObject *key_in(PyObject *dictionary, const char *name)
{
    PyObject *keys[] = {PyUnicode_FromString(name), PyBytes_FromString(name)}, *found = NULL;
    for (int each = 0; each < 2; each++) {
        if (!found && keys[each] && PyDict_Contains(dictionary, keys[each]) == 1)
            found = Py_NewRef(keys[each]);
        Py_XDECREF(keys[each]);
    }
    return found;
}

/* A new reference to bytes; NULL where there is no such variable, or none that is text, or with an exception set. */
static PyObject *value_of(PyObject *environment, const char *name)
{
    if (PyList_Check(environment)) {
        Py_ssize_t place = place_in_list(environment, name);
        return place < 0 ? NULL
                         : PyBytes_FromString(PyBytes_AS_STRING(PyList_GET_ITEM(environment, place)) + strlen(name) + 1);
    }
    PyObject *key = key_in(environment, name);
    PyObject *value = key ? PyDict_GetItemWithError(environment, key) : NULL;
    Py_XDECREF(key);
    return value ? encoded(value) : NULL;
}

static bool has_variable(PyObject *environment, const char *name)
{
    if (PyList_Check(environment))
        return place_in_list(environment, name) >= 0;
    PyObject *key = key_in(environment, name);
    Py_XDECREF(key);
    return key != NULL;
}

static int put_into_list(PyObject *list, const char *name, const char *value)
{
    Py_ssize_t place = place_in_list(list, name);
    PyObject *text = PyBytes_FromFormat("%s=%s", name, value);
    if (!text)
        return -1;
    if (place >= 0)
        return PyList_SetItem(list, place, text);
    int failed = PyList_Append(list, text);
    Py_DECREF(text);
    return failed;
}

static int put_into_dictionary(PyObject *dictionary, const char *name, const char *value)
{
    PyObject *key = key_in(dictionary, name), *text = PyBytes_FromString(value);
    if (!key && !PyErr_Occurred())
        key = PyBytes_FromString(name);
    int failed = key && text ? PyDict_SetItem(dictionary, key, text) : -1;
    Py_XDECREF(key);
    Py_XDECREF(text);
    return failed;
}

static int put_variable(PyObject *environment, const char *name, const char *value)
{
    return PyList_Check(environment) ? put_into_list(environment, name, value)
                                     : put_into_dictionary(environment, name, value);
}

/* --- what is given, and what is to be in it */

static PyObject *list_of_own(void)
{
    PyObject *list = PyList_New(0);
    for (char **text = environ; list && text && *text; text++) {
        PyObject *bytes = PyBytes_FromString(*text);
        if (!bytes || PyList_Append(list, bytes))
            Py_CLEAR(list);
        Py_XDECREF(bytes);
    }
    return list;
}

/* The dictionary behind os.environ, where `mapping` is that or another of its type; NULL where not. */
static PyObject *data_of_environ(PyObject *mapping)
{
    PyObject *modules = PyImport_GetModuleDict();
    PyObject *os = modules ? PyDict_GetItemString(modules, "os") : NULL;
    PyObject *type = os && PyModule_Check(os) ? PyDict_GetItemString(PyModule_GetDict(os), "_Environ") : NULL;
    if (!type || (PyObject *)Py_TYPE(mapping) != type)
        return NULL;
    PyObject *data = PyObject_GetAttrString(mapping, "_data");
    if (data && !PyDict_CheckExact(data))
        Py_CLEAR(data);
    return data;
}

/* A list of texts as a dictionary; of a name that is there twice the first counts, as for getenv(3). */
static PyObject *dictionary_of(PyObject *list)
{
    PyObject *dictionary = list ? PyDict_New() : NULL;
    for (Py_ssize_t place = 0; dictionary && place < PyList_GET_SIZE(list); place++) {
        const char *text = PyBytes_AS_STRING(PyList_GET_ITEM(list, place));
        size_t bytes = strcspn(text, "=");
        PyObject *name = PyBytes_FromStringAndSize(text, (Py_ssize_t)bytes);
        PyObject *value = PyBytes_FromString(text + bytes + (text[bytes] == '='));
        if (!name || !value || !PyDict_SetDefault(dictionary, name, value))
            Py_CLEAR(dictionary);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    Py_XDECREF(list);
    return dictionary;
}

/* The process's own, in the form that the call takes; NULL where it takes no None for it. */
static PyObject *copy_of_own(enum passes passes)
{
    switch (passes) {
    case PASSES_list:
    case PASSES_own:
    case PASSES_shell:
        return list_of_own();
    case PASSES_spawn:
    case PASSES_search:
        return PY_VERSION_HEX >= 0x030d0000 ? dictionary_of(list_of_own()) : NULL;
    default:
        return NULL;
    }
}

/* A copy of a given environment that may be changed; NULL for what is none that we know. */
static PyObject *copy_of(PyObject *given, enum passes passes)
{
    if (given == Py_None)
        return copy_of_own(passes);
    if (PyDict_CheckExact(given))
        return PyDict_Copy(given);
    if (passes == PASSES_list)
        return is_list_of_bytes(given) ? PyList_GetSlice(given, 0, PyList_GET_SIZE(given)) : NULL;
    PyObject *data = data_of_environ(given);
    PyObject *copy = data ? PyDict_Copy(data) : NULL;
    Py_XDECREF(data);
    return copy;
}

/* A child that is told by the program whether to record is left as it was told: it learns where it belongs, no more. */
static bool is_told(PyObject *environment, bool *off)
{
    PyObject *said = value_of(environment, VARIABLE_SWITCH);
    *off = said && switches_off(PyBytes_AS_STRING(said));
    Py_XDECREF(said);
    return said != NULL;
}

/* Split `NAME=value`; false where the name is too long. */
static bool split_variable(const char *text, char name[256], const char **value)
{
    size_t bytes = strcspn(text, "=");
    if (bytes > 255 || text[bytes] == 0)
        return false;
    memcpy(name, text, bytes);
    name[bytes] = 0;
    *value = text + bytes + 1;
    return true;
}

/* Put in a variable that is missing. 1 where it was, 0 where it was there, -1 where that went wrong. */
static int add_variable(PyObject *environment, const char *text, char name[256])
{
    const char *value;
    if (!split_variable(text, name, &value) || has_variable(environment, name))
        return 0;
    return put_variable(environment, name, value) ? -1 : 1;
}

/* The same of all but the lineage, and say which they were. One that was told by its own environment what to record
   still needs to know where its founder's libraries are. */
static int add_settings(PyObject *environment, bool told)
{
    char name[256], added[ADDED_BYTES] = "";
    int count = 0;
    for (const char *const *text = variables() + 1; *text; text++) {
        if (told && strncmp(*text, VARIABLE_GROUP "=", sizeof VARIABLE_GROUP) != 0)
            continue;
        int put = add_variable(environment, *text, name);
        if (put < 0 || strlen(added) + strlen(name) + 2 > sizeof added)
            return -1;
        if (put)
            strcat(strcat(added, count++ ? " " : ""), name);
    }
    return count && put_variable(environment, VARIABLE_ADDED, added) ? -1 : count;
}

/* Ours behind what is there. */
static int add_preload(PyObject *environment, const char *library)
{
    PyObject *there = value_of(environment, "LD_PRELOAD");
    if (!there && (PyErr_Occurred() || has_variable(environment, "LD_PRELOAD")))
        return -1;
    PyObject *text = there ? PyBytes_FromFormat("%s:%s", PyBytes_AS_STRING(there), library) : PyBytes_FromString(library);
    int failed = text ? put_variable(environment, "LD_PRELOAD", PyBytes_AS_STRING(text)) : -1;
    Py_XDECREF(there);
    Py_XDECREF(text);
    return failed ? -1 : 1;
}

/* What a process that is started now is to be told of the transaction that it is started in; empty where there is none. */
static const char *fate_to_tell(void)
{
    static const char *const words[] = {[FATE_none] = "", [FATE_kept] = "kept", [FATE_passed_over] = "passed over"};
    const struct thread *thread = current_thread;
    return words[thread && thread->recording ? chosen_fate(thread->record) : (enum fate)chosen.outside];
}

/* Is it what a child would inherit? What was started in another transaction may have left its own there. */
static bool own_tells_fate(void)
{
    const char *told = chosen.one_in ? getenv(VARIABLE_WITHIN) : NULL;
    return !chosen.one_in || strcmp(told ? told : "", fate_to_tell()) == 0;
}

/* 1 where it was put in, 0 where it was there, or -1. */
static int add_fate(PyObject *environment)
{
    if (!chosen.one_in)
        return 0;
    PyObject *told = value_of(environment, VARIABLE_WITHIN);
    bool same = !PyErr_Occurred() && strcmp(told ? PyBytes_AS_STRING(told) : "", fate_to_tell()) == 0;
    Py_XDECREF(told);
    if (same || PyErr_Occurred())
        return same ? 0 : -1;
    return put_variable(environment, VARIABLE_WITHIN, fate_to_tell()) ? -1 : 1;
}

/* How many were put in, or -1. */
static int add_variables(PyObject *environment, bool preload)
{
    char name[256];
    bool off, told = is_told(environment, &off);
    if (off || (!told && follow_is_off()))
        return 0;
    int lineage = add_variable(environment, variables()[0], name);
    int others = lineage < 0 ? 0 : add_settings(environment, told);
    int fate = lineage < 0 || others < 0 ? 0 : add_fate(environment);
    int library = preload && lineage >= 0 && others >= 0 ? add_preload(environment, preload_library()) : 0;
    return lineage < 0 || others < 0 || fate < 0 || library < 0 ? -1 : lineage + others + fate + library;
}

/* What is given in the place of `given`; NULL where that is to be passed on as it is. */
static PyObject *environment_for_child(PyObject *given, enum passes passes, bool preload)
{
    PyObject *copy = copy_of(given, passes);
    if (copy && (add_variables(copy, preload) <= 0 || PyErr_Occurred()))
        Py_CLEAR(copy);
    PyErr_Clear();
    return copy;
}

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
    if (!passed->own)
        return;
    passed->before = environ;
    environ = passed->own;
}

/* What a shell was given stays: others may have changed it meanwhile, and it lacked what the program took out. */
static void change_back(struct passed *passed, const struct slot *slot)
{
    if (slot->passes == PASSES_shell || environ != passed->own)
        return;
    environ = passed->before;
    free(passed->own);
}

/* --- the call */

static bool is_called(PyObject *text, const char *name)
{
    return PyUnicode_Check(text) && PyUnicode_CompareWithASCIIString(text, name) == 0;
}

/* Where among the arguments the environment is; -1 where it is not. */
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

/* Does the environment that children inherit have all they need? Mostly, so it is looked at without a copy. */
static bool own_is_complete(void)
{
    const char *said = getenv(VARIABLE_SWITCH);
    return said && (switches_off(said) || getenv(VARIABLE_LINEAGE));
}

/* Find what is to be passed on instead; false: nothing. */
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
    bool preload = !follow_is_off() && program_needs_preload(slot, items, count);
    if (given == Py_None && !preload && own_is_complete() && own_tells_fate())
        return false;
    passed->environment = environment_for_child(given, (enum passes)slot->passes, preload);
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

/* The arguments that are passed on. */
static PyObject *const *pass_items(struct passed *passed, const struct slot *slot, PyObject *const *items,
                                   Py_ssize_t count, PyObject *names)
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

static PyObject *pass_tuple(struct passed *passed, const struct slot *slot, PyObject *arguments)
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

/* After the call, whose exception may be set. */
static void pass_end(struct passed *passed, const struct slot *slot)
{
    if (passed->own)
        change_back(passed, slot);
    Py_XDECREF(passed->tuple);
    Py_XDECREF(passed->environment);
}
