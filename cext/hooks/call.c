#include "hooks/call.h"

#include "hooks/address_detail.h"
#include "hooks/object_descriptor.h"

PyObject *argument_called(const struct call *call, PyObject *keyword)
{
    PyObject *names = call->names;
    if (names && PyDict_CheckExact(names))
        return PyDict_GetItemWithError(names, keyword);
    for (Py_ssize_t place = 0; names && place < PyTuple_GET_SIZE(names); place++)
        if (PyTuple_GET_ITEM(names, place) == keyword)
            return call->arguments[call->count + place];
    return NULL;
}

int descriptor_of_call(const struct call *call)
{
    const struct slot *slot = call->slot;
    if (slot->effect == EFFECT_watch || slot->effect == EFFECT_unwatch)
        return descriptor_of_waited(argument_of(call, 0));
    if (slot->detail == DETAIL_tls)
        return descriptor_of_tls(call->owner);
    return descriptor_of(slot->detail == DETAIL_address ? call->owner : subject_of(call));
}
