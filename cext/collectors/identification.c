#include "collectors/identification.h"

#include <stdlib.h>
#include <string.h>

#include "cpython/frame.h"

struct identifications identified;

static void identified_clear(struct identified *place)
{
    for (unsigned index = 0; index < IDENTIFIED_TEXTS; index++)
        Py_CLEAR(place->texts[index]);
    memset(place, 0, sizeof *place);
}

void identified_forget(void)
{
    for (unsigned index = 0; identified.places && index < IDENTIFIED; index++)
        if (identified.places[index].stack)
            identified_clear(&identified.places[index]);
    identified.serial = recorder.serial;
}

int identified_begin(void)
{
    if (!identified.places)
        identified.places = calloc(IDENTIFIED, sizeof *identified.places);
    if (identified.places)
        identified_forget();
    return identified.places ? 0 : -1;
}

const char *identified_keep(struct identified *place, unsigned index, PyObject *text)
{
    Py_ssize_t bytes;
    const char *kept = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &bytes) : NULL;
    if (!kept) {
        PyErr_Clear();
        return NULL;
    }
    Py_XSETREF(place->texts[index], Py_NewRef(text));
    return kept;
}

/* The first line of a code object and how many there are to its last; one where they are not known. */
static void lines_of_code(PyCodeObject *code, uint64_t *first, uint64_t *count)
{
    PyObject *lines = PyObject_CallMethod((PyObject *)code, "co_lines", NULL), *each;
    long least = code->co_firstlineno, most = least;
    while (lines && (each = PyIter_Next(lines))) {
        PyObject *line = PyTuple_GET_ITEM(each, 2);
        long number = PyLong_Check(line) ? PyLong_AsLong(line) : least;
        most = number > most ? number : most;
        Py_DECREF(each);
    }
    Py_XDECREF(lines);
    PyErr_Clear();
    *first = least > 0 ? (uint64_t)least : 0;
    *count = (uint64_t)(most - least) + 1;
}

static PyObject *name_of_globals(frame *frame)
{
    PyObject *globals = frame_globals(frame);
    PyObject *name = globals && PyDict_Check(globals) ? PyDict_GetItemString(globals, "__name__") : NULL;
    return name && PyUnicode_Check(name) ? name : NULL;
}

static void identify_frame(struct identified *place, frame *frame)
{
    PyCodeObject *code = frame_code(frame);
    int line = PyCode_Addr2Line(code, frame_instruction(frame) * (int)sizeof(_Py_CODEUNIT));
    PyObject *name = name_of_globals(frame);
    struct interpose_area *area = &place->area;
    area->code = code;
    area->line = area->address = line > 0 ? (uint64_t)line : 0;
    area->file = identified_keep(place, 0, code->co_filename);
    area->function = identified_keep(place, 1, code->co_qualname);
    area->module = name && PyUnicode_GET_LENGTH(name) ? identified_keep(place, 2, name) : NULL;
    lines_of_code(code, &area->base, &area->size);
}

struct identified *identify(uint32_t stack)
{
    frame *running = frame_innermost(running_state());
    if (identified.serial != recorder.serial)
        identified_forget();
    struct identified *place = identified_at(stack);
    identified_clear(place);
    place->stack = stack;
    if (running && stack)
        identify_frame(place, running);
    return place;
}
