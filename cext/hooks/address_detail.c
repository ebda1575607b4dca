#include "hooks/address_detail.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/detail_levels.h"
#include "core/url.h"
#include "kinds.h"
#include "hooks/attribute_names.h"
#include "hooks/object_descriptor.h"
#include "hooks/object_texts.h"
#include "hooks/path_detail.h"

enum { HOST_BYTES = 400 };

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

static void put_host(struct text *kept, const char *text, size_t bytes)
{
    const char *host = host_within(text, &bytes);
    if (may_be_url(host, bytes))
        url_append(kept, host, bytes);
    else
        text_append(kept, host, bytes);
}

/* A port's number or name; anything else may be a URL in its place. */
static bool is_service(const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes; at++)
        if (!Py_ISALNUM(text[at]) && !strchr("-_.", text[at]))
            return false;
    return true;
}

uint32_t host_detail(PyObject *object, PyObject *port)
{
    char text[TEXT_BYTES];
    Py_ssize_t bytes = 0, port_bytes = 0;
    const char *name = host_text(object, &bytes), *service = port ? host_text(port, &port_bytes) : NULL;
    if (!name)
        return 0;
    char host[HOST_BYTES];
    struct text kept = {.bytes = host, .room = sizeof host};
    put_host(&kept, name, (size_t)bytes);
    const char *shape = memchr(host, ':', kept.length) ? "[%.*s]" : "%.*s";
    int length = snprintf(text, sizeof text, shape, (int)kept.length, host);
    if (service && is_service(service, (size_t)port_bytes))
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
    struct raised raised = raised_keep();
    PyObject *owner = PyObject_GetAttr(connection, name_of_owner);
    int number = owner ? descriptor_of(owner) : -1;
    Py_XDECREF(owner);
    raised_restore(raised);
    return number;
}
