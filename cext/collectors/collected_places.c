#include "collectors/collected_places.h"

#include <string.h>

#include "collectors/claims.h"
#include "collectors/collector_calls.h"
#include "collectors/collectors.h"
#include "collectors/pseudo_sections.h"
#include "core/clock.h"
#include "core/visible.h"
#include "cpython/raised.h"
#include "interpose_collector.h"

/* Keep what collectors that are asked once for a place have said of it. */
static void keep_claim(uint32_t stack, const struct told *told, uint32_t collector)
{
    const struct interpose_area *area = &told->area;
    struct identified *place = identified_find(stack);
    struct claim claim = claim_of(told, collector);
    if (!place)
        return;
    PyObject *module = PyUnicode_DecodeUTF8(area->module, (Py_ssize_t)strlen(area->module), "replace");
    PyObject *section = area->section ? PyUnicode_DecodeUTF8(area->section, (Py_ssize_t)strlen(area->section), "replace")
                                      : NULL;
    place->recorded = claim_stack(place->stack, claim);
    place->area.section = identified_keep(place, 4, section);
    place->area.module = identified_keep(place, 3, module);
    place->area.base = area->base;
    place->area.size = area->size;
    place->area.statement = area->statement;
    Py_XDECREF(module);
    Py_XDECREF(section);
    PyErr_Clear();
}

/* What those that are asked once for a place say of it. */
static void identify_once(const struct identified *place, const struct span *span, const void *native)
{
    PyObject *made[COLLECTORS_AT_MOST] = {NULL};
    struct told told;
    uint32_t left = collectors.on & collectors.per[INTERPOSE_PER_SITE], by = 0;
    const struct interpose_area *area = &told.area;
    fill_area(&told, place, span, native, true);
    while (left) {
        struct collector *collector = &collectors.all[__builtin_ctz(left)];
        if (run_collector(collector, &told, span, &made[collector->place]))
            by = collector->name;
        left &= (left - 1) & collectors.on; /* none is, where this one ended the recording */
        if (left)
            tell_next(&told, collector, span, true);
    }
    const struct pseudo_section *section = area->module ? section_of_module(area->module) : NULL;
    if (section && !by)
        by = collectors.all[section->collector].name;
    if (area->module && *area->module && by && collectors.on)
        keep_claim(span->stack, &told, by);
    for (unsigned index = 0; index < COLLECTORS_AT_MOST; index++)
        if (made[index])
            collectors.release(made[index]);
}

/* A place seen for the first time. A current exception stays. */
static __attribute__((noinline)) void first_identified(const struct span *span, const void *native)
{
    struct reading begin = own_begin(span->thread);
    struct raised raised = raised_keep();
    struct identified place = *identify(span->stack);
    for (unsigned index = 0; index < IDENTIFIED_TEXTS; index++)
        Py_XINCREF(place.texts[index]);
    identify_once(&place, span, native);
    for (unsigned index = 0; index < IDENTIFIED_TEXTS; index++)
        Py_XDECREF(place.texts[index]);
    raised_restore(raised);
    if (span->thread->own_depth) /* a forked child's is 0 */
        own_end(span->thread, begin);
}

const struct identified *identified_place(const struct span *span, const void *native, bool is_here)
{
    static const struct identified unknown;
    const struct identified *found = identified_find(span->stack);
    if (UNLIKELY(!found) && is_here) {
        first_identified(span, native);
        found = identified_find(span->stack);
    }
    return found ? found : &unknown;
}

void collect_place(const struct span *span)
{
    struct thread *thread = span->thread;
    thread->quiet++;
    if (!identified_find(span->stack))
        first_identified(span, NULL);
    if (thread->quiet)
        thread->quiet--;
}
