#include "hooks/child_environment.h"

#include <stdlib.h>
#include <string.h>

#include "core/child_variables.h"
#include "core/follow.h"
#include "core/preload.h"
#include "core/recorder.h"
#include "core/transaction_sampling.h"
#include "hooks/environment_copies.h"
#include "hooks/environment_variables.h"

/* If the program tells a child whether to record, that stays: it only learns where it belongs. */
static bool is_told(PyObject *environment, bool *off)
{
    PyObject *said = value_of(environment, VARIABLE_SWITCH);
    *off = said && switches_off(PyBytes_AS_STRING(said));
    Py_XDECREF(said);
    return said != NULL;
}

/* Split `NAME=value`; false if the name is too long. */
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

/* Put in a variable that is missing. 1 where it was, 0 if it was there, -1 if that went wrong. */
static int add_variable(PyObject *environment, const char *text, char name[256])
{
    const char *value;
    if (!split_variable(text, name, &value) || has_variable(environment, name))
        return 0;
    return put_variable(environment, name, value) ? -1 : 1;
}

/* Remove all of them but the lineage, and return which they were. A child with its own setting of what to record
   still needs to know where its founder's libraries are. */
static int add_settings(PyObject *environment, const char *const *settings, bool told)
{
    char name[256], added[ADDED_BYTES] = "";
    int count = 0;
    for (const char *const *text = settings; *text; text++) {
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

/* Ours after the existing ones. */
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

/* What a process that is started now must know about the transaction around it; empty without one. */
static const char *fate_to_tell(void)
{
    static const char *const words[] = {[FATE_none] = "", [FATE_kept] = "kept", [FATE_passed_over] = "passed over"};
    const struct thread *thread = current_thread;
    return words[thread_records(thread) ? chosen_fate(thread->record) : (enum fate)chosen.outside];
}

bool own_tells_fate(void)
{
    const char *told = chosen.one_in ? getenv(VARIABLE_WITHIN) : NULL;
    return !chosen.one_in || strcmp(told ? told : "", fate_to_tell()) == 0;
}

/* 1 where it was put in, 0 if it was there, or -1. */
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
    const char *const *ours = variables();
    bool off, told = is_told(environment, &off);
    if (!ours || off || (!told && follow_is_off()))
        return 0;
    int lineage = add_variable(environment, ours[0], name);
    int others = lineage < 0 ? 0 : add_settings(environment, ours + 1, told);
    int fate = lineage < 0 || others < 0 ? 0 : add_fate(environment);
    int library = preload && lineage >= 0 && others >= 0 ? add_preload(environment, preload_library()) : 0;
    return lineage < 0 || others < 0 || fate < 0 || library < 0 ? -1 : lineage + others + fate + library;
}

PyObject *environment_for_child(PyObject *given, enum passes passes, bool preload)
{
    PyObject *copy = copy_of(given, passes);
    if (copy && (add_variables(copy, preload) <= 0 || PyErr_Occurred()))
        Py_CLEAR(copy);
    PyErr_Clear();
    return copy;
}

bool own_is_complete(void)
{
    const char *said = getenv(VARIABLE_SWITCH);
    return said && (switches_off(said) || getenv(VARIABLE_LINEAGE));
}
