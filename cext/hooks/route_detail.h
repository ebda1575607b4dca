/* What a server answers: its method and the route that serves it, or else the path, as a number in strings. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* A served request: its method, and the path of its route, or else its own. */
uint32_t served_detail(PyObject *owner, PyObject *told);

/* The pattern of the route that served it, as its framework knows at the end of the call: `/orders/{id}` with
   FastAPI. 0 if there is none. */
uint32_t told_route_detail(PyObject *told);

/* The same of an object that its framework keeps it in: the first of the ways that leads to a text. The name of a function
   is kept as it is, without a method. `mount`: the path that its application is mounted at, or NULL. */
uint32_t kept_route_detail(PyObject *object, PyObject *ways, PyObject *method, PyObject *mount, bool is_name);
