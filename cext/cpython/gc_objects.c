#include "cpython/gc_objects.h"

#include "cpython/version.h"

#if !VISITS_OBJECTS
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#undef _PyGC_FINALIZED /* which both sorts of headers define */
#define Py_BUILD_CORE 1
#include <internal/pycore_gc.h>
#include <internal/pycore_interp.h>
#undef Py_BUILD_CORE
#pragma GCC diagnostic pop
#endif

void visit_tracked(int (*visit)(PyObject *, void *), void *given)
{
#if VISITS_OBJECTS
    PyUnstable_GC_VisitObjects(visit, given);
#else
    struct _gc_runtime_state *collector = &PyInterpreterState_Get()->gc;
    int enabled = collector->enabled;
    collector->enabled = 0;
    for (int generation = 0; generation < NUM_GENERATIONS; generation++) {
        PyGC_Head *list = &collector->generations[generation].head;
        for (PyGC_Head *each = _PyGCHead_NEXT(list); each != list; each = _PyGCHead_NEXT(each))
            visit((PyObject *)(each + 1), given);
    }
    collector->enabled = enabled;
#endif
}
