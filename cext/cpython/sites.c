#include "cpython/sites.h"

#include <stdlib.h>
#include <string.h>

#include "cpython/code_origins.h"
#include "cpython/ownership.h"

enum { STACK_DEPTH = 128 };

struct known_sites known_sites = {.index = -1};

static struct code_sites *describe_code(PyCodeObject *code, struct code_sites *sites)
{
    uint32_t count = (uint32_t)Py_SIZE(code);
    if (!sites)
        sites = calloc(1, sizeof *sites + count * sizeof(struct place));
    else
        memset(sites->places, 0, count * sizeof(struct place));
    if (!sites)
        return NULL;
    sites->code = code;
    sites->serial = recorder.serial;
    sites->within = 0;
    sites->own = is_own(code->co_filename);
    sites->file = intern_text(code->co_filename);
    sites->function = intern_text(code->co_qualname);
    sites->first_line = (uint32_t)code->co_firstlineno;
    sites->count = count;
    if (sites->own && recorder.on)
        note_source(code->co_filename, sites->file);
    return sites;
}

/* An exception that is set stays as it is: this runs between a call and its caller. */
static struct code_sites *new_code_sites(PyCodeObject *code, struct code_sites *old)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    struct code_sites *sites = describe_code(code, old);
    if (sites && sites != old && code_extra_set(code, known_sites.index, sites)) {
        PyErr_Clear();
        free(sites);
        sites = NULL;
    }
    PyErr_Restore(type, value, traceback);
    return sites;
}

static void add_place(struct code_sites *sites, PyCodeObject *code, uint32_t instruction)
{
    int offset = (int)(instruction * sizeof(_Py_CODEUNIT));
    int line = PyCode_Addr2Line(code, offset);
    struct site site = {
        .file = sites->file,
        .function = sites->function,
        .line = line > 0 ? (uint32_t)line : 0,
        .instruction = (uint32_t)offset,
        .first_line = sites->first_line,
        .own = sites->own,
    };
    struct place *place = &sites->places[instruction];
    place->site = site_add(&site);
    if (sites->own)
        place->stack = stack_intern(place->site, 0, 0);
}

struct place *first_sight(PyCodeObject *code, struct code_sites *sites, uint32_t instruction, uint32_t *own_code)
{
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    struct place *place = NULL;
    if (!sites || sites->serial != recorder.serial)
        sites = new_code_sites(code, sites);
    if (sites && instruction < sites->count) {
        place = &sites->places[instruction];
        *own_code = sites->own;
        if (!place->site)
            add_place(sites, code, instruction);
    }
    own_end(thread, begin);
    return place;
}

struct code_sites *first_sight_of_code(PyCodeObject *code, struct code_sites *old)
{
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    struct code_sites *sites = new_code_sites(code, old);
    own_end(thread, begin);
    return sites;
}

/* From the outermost site in: each stack names that of its caller. */
static uint32_t intern_sites(const uint32_t *sites, unsigned count, uint32_t cut)
{
    uint32_t stack = 0;
    while (count--) {
        stack = stack_intern(sites[count], stack, cut);
        cut = 0;
    }
    return stack;
}

uint32_t stack_of(frame *frame, bool whole)
{
    uint32_t sites[STACK_DEPTH], own_code = 0;
    unsigned count = 0;
    while (frame && count < STACK_DEPTH && !(own_code && !whole)) {
        struct place *place = place_of(frame, &own_code);
        if (place && place->site)
            sites[count++] = place->site;
        frame = frame_outer(frame);
    }
    return intern_sites(sites, count, frame && !(own_code && !whole));
}

uint32_t whole_stack_here(void)
{
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    frame *frame = frame_innermost(running_state());
    uint32_t stack = frame ? stack_of(frame, true) : 0;
    own_end(thread, begin);
    return stack;
}

int sites_begin(freefunc release)
{
    known_sites.interpreter = PyInterpreterState_Get();
    if (known_sites.index < 0)
        known_sites.index = code_extra_index(release);
    return known_sites.index < 0 ? -1 : 0;
}
