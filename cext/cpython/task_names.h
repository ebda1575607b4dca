/* What a task is called: as the program said (asyncio.create_task(…, name=…)), else as its coroutine. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>

/* Keep the name of the task `number`, if it has one, of which `outermost` is the coroutine. Runs no Python code. */
void learn_task_name(uint32_t number, PyObject *outermost);
