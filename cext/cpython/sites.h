/* Where a call comes from: the numbers of its site and stack, kept with the code object itself.

   They hang on the code object by its extra slot, freed with it: an address is soon some other code's, and a reference
   would keep alive what the program let go. File, name and line are written at first sight of each instruction. */
#pragma once

#include "cpython/frame.h"
#include "cpython/ownership.h"
#include "cpython/code_origins.h"

enum { STACK_DEPTH = 128 };

struct place {
    uint32_t site;
    uint32_t stack; /* of this site alone, where the code is the program's own */
    uint32_t verdict; /* what the filter has decided of it (hooks/filtering.h) */
};

/* What is known of a code object. */
struct code_sites {
    uint32_t serial; /* of the recording that the numbers belong to */
    uint32_t own;
    uint32_t holds; /* it stands among the holders of locks */
    uint32_t within; /* what the filter has decided of it, while it runs */
    PyCodeObject *code; /* lives as long as this does */
    uint32_t file, function, first_line;
    uint32_t count;
    struct place places[]; /* by instruction */
};

static int sites_index = -1;
static PyInterpreterState *sites_interpreter; /* whose the index is */

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
    if (sites && sites != old && code_extra_set(code, sites_index, sites)) {
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

static __attribute__((noinline)) struct place *first_sight(PyCodeObject *code, struct code_sites *sites,
                                                           uint32_t instruction, uint32_t *own_code)
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

static __attribute__((noinline)) struct code_sites *first_sight_of_code(PyCodeObject *code, struct code_sites *old)
{
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    struct code_sites *sites = new_code_sites(code, old);
    own_end(thread, begin);
    return sites;
}

/* What is known of a frame's code; NULL where memory is short. */
static inline struct code_sites *sites_of(frame *frame)
{
    PyCodeObject *code = frame_code(frame);
    struct code_sites *sites = code_extra(code, sites_index);
    return LIKELY(sites && sites->serial == recorder.serial) ? sites : first_sight_of_code(code, sites);
}

/* Site and stack of a frame; NULL where memory is short. */
static inline struct place *place_of(frame *frame, uint32_t *own_code)
{
    PyCodeObject *code = frame_code(frame);
    uint32_t instruction = (uint32_t)frame_instruction(frame);
    struct code_sites *sites = code_extra(code, sites_index);
    if (LIKELY(sites && sites->serial == recorder.serial && instruction < sites->count &&
               sites->places[instruction].site)) {
        *own_code = sites->own;
        return &sites->places[instruction];
    }
    return first_sight(code, sites, instruction, own_code);
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

/* The stack from `frame` outward; not farther than the first own code unless the whole is wanted. */
static __attribute__((noinline)) uint32_t stack_of(frame *frame, bool whole)
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

/* The stack of the call being made: its site alone when that is in own code. */
static inline uint32_t stack_here(PyThreadState *state)
{
    uint32_t own_code = 0;
    if (UNLIKELY(!recorder.stack_kept))
        return 0;
    frame *frame = frame_innermost(state);
    if (UNLIKELY(!frame))
        return 0;
    struct place *place = place_of(frame, &own_code);
    if (LIKELY(place && own_code))
        return place->stack;
    return stack_of(frame, false);
}

static uint32_t whole_stack_here(void)
{
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    frame *frame = frame_innermost(running_state());
    uint32_t stack = frame ? stack_of(frame, true) : 0;
    own_end(thread, begin);
    return stack;
}

/* `release` is called with what is known of a code object when that is freed. */
static int sites_begin(freefunc release)
{
    sites_interpreter = PyInterpreterState_Get();
    if (sites_index < 0)
        sites_index = code_extra_index(release);
    return sites_index < 0 ? -1 : 0;
}

/* The calling thread's state if it runs in the interpreter that is recorded: another one may have a lock of its own,
   and ours is all that orders what the recorder does. */
static inline PyThreadState *recorded_state(void)
{
    PyThreadState *state = running_state();
    return LIKELY(state && state->interp == sites_interpreter) ? state : NULL;
}
