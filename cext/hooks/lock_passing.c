#include "hooks/lock_passing.h"

#include "hooks/attribute_names.h"
#include "hooks/object_descriptor.h"

bool will_not_wait(PyObject *first, PyObject *keywords)
{
    PyObject *blocking = !first && keywords ? PyDict_GetItemWithError(keywords, name_of_blocking) : first;
    return blocking == Py_False || (blocking && PyLong_CheckExact(blocking) && descriptor_of_number(blocking) == 0);
}
