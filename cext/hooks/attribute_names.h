/* The names of attributes that are read, and paths of several of them, made once. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyObject *name_of_path, *name_of_owner, *name_of_buffer, *name_of_blocking, *name_of_module, *name_of_taking;
extern PyObject *name_of_query, *name_of_kept_query;
extern PyObject *name_of_topic, *name_of_value, *name_of_error; /* what a message of Kafka tells */

int details_begin(void);

extern PyObject *url_ways; /* how yarl keeps them: the names of scheme, authority and path */
extern PyObject *way_to_path; /* how a route keeps its own */
extern PyObject *way_to_endpoint; /* how a route that is no mount keeps what answers */
extern PyObject *way_to_scope; /* how a server, or a request, keeps what ASGI hands on */
extern PyObject *socket_ways; /* how objects around a socket keep it */

extern PyObject *name_of_route; /* the key under which a router of ASGI puts the route that it found */

int plain_begin(void);
