#include "hooks/attribute_names.h"

PyObject *name_of_path, *name_of_owner, *name_of_buffer, *name_of_blocking, *name_of_module, *name_of_taking;
PyObject *name_of_query, *name_of_kept_query;
PyObject *name_of_topic, *name_of_value, *name_of_error;

static int messages_begin(void)
{
    name_of_topic = name_of_topic ? name_of_topic : PyUnicode_InternFromString("topic");
    name_of_value = name_of_value ? name_of_value : PyUnicode_InternFromString("value");
    name_of_error = name_of_error ? name_of_error : PyUnicode_InternFromString("error");
    return name_of_topic && name_of_value && name_of_error ? 0 : -1;
}

int details_begin(void)
{
    name_of_query = name_of_query ? name_of_query : PyUnicode_InternFromString("query");
    name_of_kept_query = name_of_kept_query ? name_of_kept_query : PyUnicode_InternFromString("_query");
    name_of_path = name_of_path ? name_of_path : PyUnicode_InternFromString("_str");
    name_of_owner = name_of_owner ? name_of_owner : PyUnicode_InternFromString("owner");
    name_of_buffer = name_of_buffer ? name_of_buffer : PyUnicode_InternFromString("__buffer__");
    name_of_module = name_of_module ? name_of_module : PyUnicode_InternFromString("__module__");
    name_of_blocking = name_of_blocking ? name_of_blocking : PyUnicode_InternFromString("blocking");
    if (!name_of_query || !name_of_kept_query || messages_begin() < 0)
        return -1;
    name_of_taking = name_of_taking ? name_of_taking : PyUnicode_InternFromString("handle_one_request");
    return name_of_taking && name_of_path && name_of_owner && name_of_buffer && name_of_blocking && name_of_module ? 0 : -1;
}

PyObject *url_ways;
PyObject *way_to_path;
PyObject *way_to_endpoint;
PyObject *way_to_scope;
PyObject *socket_ways;

PyObject *name_of_route;

int plain_begin(void)
{
    if (!url_ways)
        url_ways = Py_BuildValue("((N)(N)(N))", PyUnicode_InternFromString("_scheme"),
                                 PyUnicode_InternFromString("_netloc"), PyUnicode_InternFromString("_path"));
    if (!way_to_path)
        way_to_path = Py_BuildValue("(N)", PyUnicode_InternFromString("path"));
    if (!way_to_endpoint)
        way_to_endpoint = Py_BuildValue("(N)", PyUnicode_InternFromString("endpoint"));
    if (!way_to_scope)
        way_to_scope = Py_BuildValue("(N)", PyUnicode_InternFromString("scope"));
    if (!socket_ways)
        socket_ways = Py_BuildValue("((s)(s)(s))", "sock", "socket", "_sock");
    name_of_route = name_of_route ? name_of_route : PyUnicode_InternFromString("route");
    return url_ways && way_to_path && way_to_endpoint && way_to_scope && socket_ways && name_of_route ? 0 : -1;
}
