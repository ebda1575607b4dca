#include "cpython/sites.h"

#include <stdlib.h>
#include <string.h>

#include "cpython/code_origins.h"
#include "cpython/own_code.h"
#include "cpython/ownership.h"

enum { STACK_DEPTH = 128 };

struct known_sites known_sites = {.index = -1};

/* The index in the interpreter that the thread was in last, if it was another than the recorded one. */
static __thread struct {
    int64_t interpreter;
    int index;
} index_elsewhere;

static bool is_recorded_in_full(const PyThreadState *state)
{
    return state->interp == known_sites.interpreter;
}

/* Another interpreter's index for our data, kept in its own dictionary; below 0 if there is none left. */
static int ask_index(PyInterpreterState *interpreter)
{
    PyObject *kept_by = PyInterpreterState_GetDict(interpreter);
    PyObject *kept = kept_by ? PyDict_GetItemString(kept_by, "interpose.sites") : NULL;
    if (kept)
        return (int)PyLong_AsLong(kept);
    int index = kept_by ? code_extra_index(known_sites.release) : -1;
    PyObject *number = kept_by ? PyLong_FromLong(index) : NULL;
    if (!number || PyDict_SetItemString(kept_by, "interpose.sites", number))
        PyErr_Clear();
    Py_XDECREF(number);
    return index;
}

/* Own cost. An exception that is set stays as it is. */
static int find_index(PyInterpreterState *interpreter, int64_t id)
{
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    struct raised raised = raised_keep();
    index_elsewhere.interpreter = id;
    index_elsewhere.index = ask_index(interpreter);
    raised_restore(raised);
    own_end(thread, begin);
    return index_elsewhere.index;
}

/* Of the interpreter that runs. */
static int index_here(PyThreadState *state)
{
    if (is_recorded_in_full(state))
        return known_sites.index;
    int64_t id = PyInterpreterState_GetID(state->interp);
    return id == index_elsewhere.interpreter ? index_elsewhere.index : find_index(state->interp, id);
}

/* All but the places. It may run Python's own code, and other threads may do the same meanwhile. */
static struct code_sites describe_code(frame *here)
{
    PyCodeObject *code = frame_code(here);
    PyThreadState *state = running_state();
    struct code_sites sites = {
        .serial = recorder.serial,
        .own = is_own_code(code, here),
        .code = code,
        .file = intern_file(code->co_filename),
        .function = intern_text(code->co_qualname),
        .first_line = (uint32_t)code->co_firstlineno,
        .count = (uint32_t)Py_SIZE(code),
    };
    if (!is_recorded_in_full(state))
        sites.interpreter = (uint32_t)PyInterpreterState_GetID(state->interp);
    else if (sites.own && recorder_is_on())
        note_source(code->co_filename, sites.file);
    return sites;
}

/* In the memory of an earlier recording's data, or in new memory; data in memory stays among the holders. */
static void write_code(struct code_sites *sites, const struct code_sites *described)
{
    memset(sites->places, 0, described->count * sizeof(struct place));
    sites->own = described->own;
    __atomic_store_n(&sites->within, 0, __ATOMIC_RELAXED);
    sites->interpreter = described->interpreter;
    sites->code = described->code;
    sites->file = described->file;
    sites->function = described->function;
    sites->first_line = described->first_line;
    sites->count = described->count;
    __atomic_store_n(&sites->serial, described->serial, __ATOMIC_RELEASE);
}

/* Hang it on the code object; NULL if that went wrong. */
static struct code_sites *hang_on(PyCodeObject *code, int index, const struct code_sites *described)
{
    struct code_sites *sites = calloc(1, sizeof *sites + described->count * sizeof(struct place));
    if (!sites)
        return NULL;
    write_code(sites, described);
    code_can_be_kept(code); /* for hooks/lock_holders.c */
    if (code_extra_set(code, index, sites) == 0)
        return sites;
    PyErr_Clear();
    free(sites);
    return NULL;
}

/* Another thread may have been here first. */
static struct code_sites *put_code(PyCodeObject *code, const struct code_sites *described)
{
    int index = index_here(running_state());
    if (!side_begin(SIDE_SITES))
        return NULL;
    struct code_sites *sites = code_extra(code, index);
    if (!sites)
        sites = hang_on(code, index, described);
    else if (!is_of_this_recording(sites))
        write_code(sites, described);
    side_end(SIDE_SITES);
    return sites;
}

/* An exception that is set stays as it is: this runs between a call and its caller. */
static struct code_sites *new_code_sites(frame *here)
{
    struct raised raised = raised_keep();
    struct code_sites described = describe_code(here), *sites = put_code(described.code, &described);
    raised_restore(raised);
    return sites;
}

uint32_t new_stack_at(struct place *place, uint32_t outer)
{
    uint32_t stack = stack_intern(site_at(place), outer, 0);
    __atomic_store_n(&place->seen, (uint64_t)outer << 32 | stack, __ATOMIC_RELAXED);
    return stack;
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
        .interpreter = sites->interpreter,
    };
    struct place *place = &sites->places[instruction];
    __atomic_store_n(&place->site, site_add(&site), __ATOMIC_RELEASE);
    if (sites->own)
        new_stack_at(place, 0);
}

struct place *first_sight(frame *here, struct code_sites *sites, uint32_t instruction, uint32_t *own_code)
{
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    struct place *place = NULL;
    if (!sites || !is_of_this_recording(sites))
        sites = new_code_sites(here);
    if (sites && instruction < sites->count) {
        place = &sites->places[instruction];
        *own_code = sites->own;
        if (!site_at(place))
            add_place(sites, sites->code, instruction);
    }
    own_end(thread, begin);
    return place;
}

struct code_sites *first_sight_of_code(frame *here)
{
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    struct code_sites *sites = new_code_sites(here);
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

uint32_t stack_by(site_finder *find, frame *frame, int index, bool whole)
{
    uint32_t sites[STACK_DEPTH], own_code = 0;
    unsigned count = 0;
    while (frame && count < STACK_DEPTH && !(own_code && !whole)) {
        uint32_t site = find(frame, index, &own_code);
        if (site)
            sites[count++] = site;
        frame = frame_outer(frame);
    }
    return intern_sites(sites, count, frame && !(own_code && !whole));
}

static uint32_t site_of(frame *frame, int index, uint32_t *own_code)
{
    const struct place *place = place_of(frame, own_code);
    (void)index;
    return place ? site_at(place) : 0;
}

uint32_t stack_of(frame *innermost)
{
    struct place *places[STACK_DEPTH];
    uint32_t own_code = 0, stack = 0;
    unsigned count = 0;
    for (frame *frame = innermost; frame && !own_code; frame = frame_outer(frame)) {
        if (count == STACK_DEPTH)
            return stack_by(site_of, innermost, known_sites.index, false);
        struct place *place = place_of(frame, &own_code);
        if (place && site_at(place))
            places[count++] = place;
    }
    while (count--)
        stack = stack_at(places[count], stack);
    return stack;
}

/* 0 also for code that several interpreters share: what hangs on it is of that which is recorded in full. */
static uint32_t site_elsewhere(frame *frame, int index, uint32_t *own_code)
{
    PyCodeObject *code = frame_code(frame);
    if (code_is_immortal(code))
        return 0;
    uint32_t instruction = (uint32_t)frame_instruction(frame);
    struct code_sites *sites = code_extra(code, index);
    if (!is_in_sight(sites, instruction)) {
        const struct place *place = first_sight(frame, sites, instruction, own_code);
        return place ? site_at(place) : 0;
    }
    *own_code = sites->own;
    return site_at(&sites->places[instruction]);
}

static uint32_t stack_from_elsewhere(PyThreadState *state, bool whole)
{
    int index = index_here(state);
    return stack_by(site_elsewhere, index < 0 ? NULL : frame_innermost(state), index, whole);
}

uint32_t stack_elsewhere(PyThreadState *state)
{
    return recorder.stack_kept ? stack_from_elsewhere(state, false) : 0;
}

uint32_t whole_stack_here(void)
{
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    PyThreadState *state = running_state();
    frame *frame = frame_innermost(state);
    uint32_t stack = 0;
    if (frame)
        stack = is_recorded_in_full(state) ? stack_by(site_of, frame, known_sites.index, true)
                                           : stack_from_elsewhere(state, true);
    own_end(thread, begin);
    return stack;
}

int sites_begin(freefunc release)
{
    known_sites.interpreter = PyInterpreterState_Get();
    known_sites.release = release;
    if (known_sites.index < 0)
        known_sites.index = code_extra_index(release);
    return known_sites.index < 0 ? -1 : 0;
}
