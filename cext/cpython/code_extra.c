#include "cpython/code_extra.h"

#include "cpython/side_lock.h"

bool extras_lie_as_known;

int code_extra_index(freefunc release)
{
    return extra_index(release);
}

void *code_extra_asked(PyCodeObject *code, int index)
{
    void *extra = NULL;
    extra_get(code, index, &extra);
    return extra;
}

/* CPython calls each keeper's free function even if it keeps nothing, as soon as there is room for its data. So
   there is room only for ours, unless other keepers have made room before. */
static void code_extra_fit(PyCodeObject *code, Py_ssize_t size_before, int index)
{
    struct code_extras *extras = (struct code_extras *)code->co_extra;
    extras->size = size_before > index ? size_before : index + 1;
}

int code_extra_set(PyCodeObject *code, int index, void *value)
{
    const struct code_extras *before = (const struct code_extras *)code->co_extra;
    Py_ssize_t size_before = before && extras_lie_as_known ? before->size : 0;
    bool fits = !IS_FREE_THREADED && (!before || extras_lie_as_known); /* there others look at the size */
    int failed = extra_set(code, index, value);
    if (failed)
        return failed;
    bool as_known = code_extra_direct(code, index) == value;
    if (as_known != extras_lie_as_known)
        extras_lie_as_known = as_known;
    if (fits && extras_lie_as_known)
        code_extra_fit(code, size_before, index);
    return 0;
}
