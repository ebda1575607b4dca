#include "hooks/address_detail.h"

#include <stdio.h>
#include <string.h>

#include "core/detail_levels.h"
#include "kinds.h"
#include "hooks/attribute_names.h"
#include "hooks/object_descriptor.h"
#include "hooks/object_texts.h"
#include "hooks/path_detail.h"
#include "hooks/url_detail.h"

/* Text and length of a host's name or address; NULL for other objects. */
static const char *host_text(PyObject *host, Py_ssize_t *bytes)
{
    if (PyUnicode_Check(host) && PyUnicode_IS_COMPACT_ASCII(host)) {
        *bytes = PyUnicode_GET_LENGTH(host);
        return (const char *)PyUnicode_1BYTE_DATA(host);
    }
    if (!PyBytes_Check(host))
        return NULL;
    *bytes = PyBytes_GET_SIZE(host);
    return PyBytes_AS_STRING(host);
}

uint32_t host_detail(PyObject *host, PyObject *port)
{
    char text[TEXT_BYTES];
    Py_ssize_t bytes = 0, port_bytes = 0;
    const char *name = host_text(host, &bytes), *service = port ? host_text(port, &port_bytes) : NULL;
    if (!name)
        return 0;
    const char *at = memrchr(name, '@', (size_t)bytes); /* who asks, and by what password, is no part of a host's name */
    bytes -= at ? at + 1 - name : 0;
    name = at ? at + 1 : name;
    bytes = (Py_ssize_t)length_until(name, (size_t)bytes, "?#"); /* nor are the parameters of a URL given by mistake */
    const char *shape = memchr(name, ':', (size_t)bytes) ? "[%.*s]" : "%.*s";
    int length = snprintf(text, 512, shape, (int)(bytes < 400 ? bytes : 400), name);
    if (service)
        length += snprintf(text + length, 128, ":%.*s", (int)(port_bytes < 100 ? port_bytes : 100), service);
    else if (port && PyLong_CheckExact(port) && descriptor_of_number(port) >= 0)
        length += snprintf(text + length, 128, ":%d", descriptor_of_number(port));
    return argument_intern(KIND_net, text, (size_t)length);
}

uint32_t address_detail(PyObject *address)
{
    if (!PyTuple_Check(address))
        return path_text(address, KIND_net);
    if (PyTuple_GET_SIZE(address) < 2)
        return 0;
    return host_detail(PyTuple_GET_ITEM(address, 0), PyTuple_GET_ITEM(address, 1));
}

int descriptor_of_tls(PyObject *connection)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *owner = PyObject_GetAttr(connection, name_of_owner);
    int number = owner ? descriptor_of(owner) : -1;
    Py_XDECREF(owner);
    PyErr_Restore(type, value, traceback);
    return number;
}
