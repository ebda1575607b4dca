#include "hooks/filtered_places.h"

#include "core/visible.h"
#include "cpython/attributes.h"
#include "cpython/ownership.h"
#include "cpython/sites.h"

static const char *text_or_null(PyObject *text)
{
    const char *found = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    if (!found)
        PyErr_Clear();
    return found;
}

static struct call_site call_site_of(frame *here, PyObject *module, char file[FILE_ROOM])
{
    PyCodeObject *code = frame_code(here);
    int line = PyCode_Addr2Line(code, (int)((size_t)frame_instruction(here) * sizeof(_Py_CODEUNIT)));
    return (struct call_site){
        .module = text_or_null(module),
        .file = name_of_file(code->co_filename, file) ? file : NULL,
        .function = text_or_null(code->co_qualname),
        .line = line > 0 ? (uint32_t)line : 0,
    };
}

static unsigned decide_site(const struct call_site *site)
{
    return filter_site(site) ? 0 : LEFT_OUT;
}

unsigned decide(frame *here, unsigned (*by)(const struct call_site *))
{
    struct raised raised = raised_keep();
    PyObject *names = frame_globals(here);
    PyObject *module = names && PyDict_CheckExact(names) ? entry_named(names, "__name__") : NULL;
    char file[FILE_ROOM];
    struct call_site site = call_site_of(here, module, file);
    unsigned bits = by(&site);
    Py_XDECREF(module);
    raised_restore(raised);
    return bits;
}

/* The place of the innermost frame of the program's own code, else of the innermost; NULL if there is none. */
static struct place *calling_place(PyThreadState *state, frame **where)
{
    uint32_t own = 0;
    frame *innermost = frame_innermost(state);
    for (*where = innermost; *where; *where = frame_outer(*where)) {
        struct place *place = place_of(*where, &own);
        if (!place || own)
            return place;
    }
    *where = innermost;
    return innermost ? place_of(innermost, &own) : NULL;
}

bool site_passes(PyThreadState *state)
{
    static const struct call_site nowhere;
    frame *where;
    struct place *place = calling_place(state, &where);
    if (UNLIKELY(!place))
        return filter_site(&nowhere);
    uint32_t serial = filter_serial(), verdict = __atomic_load_n(&place->verdict, __ATOMIC_RELAXED);
    if (UNLIKELY(!is_decided(verdict, serial))) {
        verdict = decided(serial, decide(where, decide_site));
        __atomic_store_n(&place->verdict, verdict, __ATOMIC_RELAXED);
    }
    return !(verdict & LEFT_OUT);
}
