/* What is known by itself of where a call was made: file, function, module and the lines of the code, by the call's stack.

   Looked up once for each stack, while its frame stands; in a table of a fixed size, from which the older goes. Only where
   there are data collectors (collectors/collectors.h), which are told it. */
#pragma once

#define PY_SSIZE_T_CLEAN

#include "interpose_collector.h"
#include "cpython/sites.h"

enum { IDENTIFIED = 2048, IDENTIFIED_TEXTS = 5 };

struct identified {
    uint32_t stack;    /* whose place it is; 0 in an unused entry */
    uint32_t recorded; /* the stack that is recorded instead, where collectors named the place itself; or 0 */
    PyObject *texts[IDENTIFIED_TEXTS]; /* keep those of the area alive */
    struct interpose_area area; /* as collectors are given it at each call; of the code it has no reference */
};

static struct {
    struct identified *places;
    uint32_t serial; /* of the recording that the stacks are of */
} identified;

static void identified_clear(struct identified *place)
{
    for (unsigned index = 0; index < IDENTIFIED_TEXTS; index++)
        Py_CLEAR(place->texts[index]);
    memset(place, 0, sizeof *place);
}

static void identified_forget(void)
{
    for (unsigned index = 0; identified.places && index < IDENTIFIED; index++)
        if (identified.places[index].stack)
            identified_clear(&identified.places[index]);
    identified.serial = recorder.serial;
}

/* 0, or -1 where there is no room. */
static int identified_begin(void)
{
    if (!identified.places)
        identified.places = calloc(IDENTIFIED, sizeof *identified.places);
    if (identified.places)
        identified_forget();
    return identified.places ? 0 : -1;
}

/* The text's bytes, which stay as long as the entry; NULL for what is no text. */
static const char *identified_keep(struct identified *place, unsigned index, PyObject *text)
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
    PyObject *globals = frame->f_globals;
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

static inline struct identified *identified_at(uint32_t stack)
{
    return &identified.places[stack % IDENTIFIED];
}

/* What is known of the place of a stack, or NULL. */
static inline struct identified *identified_find(uint32_t stack)
{
    struct identified *place = identified_at(stack);
    return LIKELY(place->stack == stack && identified.serial == recorder.serial) ? place : NULL;
}

/* The same, looked up now: the frame that runs is the one that called. */
static __attribute__((noinline)) struct identified *identify(uint32_t stack)
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
