#include "hooks/kafka_messages.h"

#include <stdbool.h>
#include <string.h>

#include "core/detail_levels.h"
#include "cpython/attributes.h"
#include "hooks/attribute_names.h"
#include "hooks/call_result.h"

/* A method in C, without arguments, of the type that the package has; later versions name it by the package, too. */
static bool is_of_messages(PyObject *method)
{
    static const char name[] = "cimpl.Message", package[] = "confluent_kafka.";
    if (!method || !Py_IS_TYPE(method, &PyMethodDescr_Type) || ((PyMethodDescrObject *)method)->d_method->ml_flags != METH_NOARGS)
        return false;
    const char *owner = PyDescr_TYPE(method)->tp_name;
    size_t before = strncmp(owner, package, sizeof package - 1) == 0 ? sizeof package - 1 : 0;
    return strcmp(owner + before, name) == 0;
}

/* What a message tells; a new reference, NULL for anything else. */
static PyObject *told(PyObject *message, PyObject *name)
{
    PyObject *method = entry_of_type(Py_TYPE(message), name), *result = NULL;
    if (is_of_messages(method))
        result = ((PyMethodDescrObject *)method)->d_method->ml_meth(message, NULL);
    if (!result)
        PyErr_Clear();
    Py_XDECREF(method);
    return result;
}

static bool is_equal(PyObject *one, PyObject *other)
{
    return one && other && PyUnicode_CheckExact(one) && PyUnicode_CheckExact(other) && PyUnicode_Compare(one, other) == 0;
}

/* A new reference; NULL where there are several, or none. */
static PyObject *topic_of_all(PyObject *messages)
{
    PyObject *topic = PyList_GET_SIZE(messages) ? told(PyList_GET_ITEM(messages, 0), name_of_topic) : NULL;
    for (Py_ssize_t place = 1; topic && place < PyList_GET_SIZE(messages); place++) {
        PyObject *other = told(PyList_GET_ITEM(messages, place), name_of_topic);
        if (!is_equal(topic, other))
            Py_CLEAR(topic);
        Py_XDECREF(other);
    }
    return topic;
}

uint32_t topic_detail(PyObject *object)
{
    PyObject *topic = PyList_CheckExact(object) ? topic_of_all(object) : told(object, name_of_topic);
    Py_ssize_t bytes;
    const char *text = bytes_of_text(topic, &bytes);
    uint32_t number = text ? argument_intern(KIND_db, text, (size_t)bytes) : 0;
    Py_XDECREF(topic);
    return number;
}

static uint64_t size_of_one(PyObject *message)
{
    PyObject *error = told(message, name_of_error), *value = error == Py_None ? told(message, name_of_value) : NULL;
    uint64_t bytes = size_of(value);
    Py_XDECREF(value);
    Py_XDECREF(error);
    return bytes;
}

uint64_t size_of_messages(PyObject *object)
{
    uint64_t bytes = 0;
    if (!object || !PyList_CheckExact(object))
        return object ? size_of_one(object) : 0;
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(object); place++)
        bytes += size_of_one(PyList_GET_ITEM(object, place));
    return bytes;
}
