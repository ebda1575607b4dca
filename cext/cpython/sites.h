/* Where a call comes from: the numbers of its site and stack, kept with the code object itself.

   They hang on the code object by its extra slot, freed with it: an address is soon some other code's, and a reference
   would keep alive what the program let go. File, name and line are written at first sight of each instruction.

   A code object is of one interpreter, and its sites tell of which. Each interpreter numbers the extra slots itself. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/recorder.h"
#include "cpython/code_extra.h"
#include "cpython/raised.h"
#include "cpython/side_lock.h"

struct place {
    uint64_t seen; /* the caller's stack at the last call (0: none matters), and what that came to with this site: stack_at */
    uint32_t site;
    uint32_t verdict; /* what the filter has decided of it (hooks/filtered_places.h) */
};

/* The data of a code object. Threads read it while others add to it: `serial` is written last, and of a place its
   site. */
struct code_sites {
    uint32_t serial; /* of the recording that the numbers belong to */
    uint32_t own;
    uint32_t holds; /* it is among the holders of locks */
    uint32_t within; /* what the filter has decided of it, while it runs */
    uint32_t interpreter; /* its interpreter; 0: the one that is recorded in full */
    PyCodeObject *code; /* lives as long as this does */
    uint32_t file, function, first_line;
    uint32_t count;
    struct place places[]; /* by instruction */
};

/* Where the numbers hang, and in which interpreter: that which began the recording. */
struct known_sites {
    int index; /* of the extra slot; below 0: none yet */
    PyInterpreterState *interpreter;
    freefunc release;
};

VISIBLE extern struct known_sites known_sites;

/* Call `release` with a code object's data when that is freed. Below 0 if there is no room. */
VISIBLE int sites_begin(freefunc release);

/* The same as the next two, where it is not known yet; both are own cost. */
VISIBLE struct code_sites *first_sight_of_code(frame *here);
VISIBLE struct place *first_sight(frame *here, struct code_sites *sites, uint32_t instruction, uint32_t *own_code);

static inline bool is_of_this_recording(const struct code_sites *sites)
{
    return __atomic_load_n(&sites->serial, __ATOMIC_ACQUIRE) == recorder.serial;
}

/* The data of a frame's code; NULL if memory is short. */
static inline struct code_sites *sites_of(frame *frame)
{
    PyCodeObject *code = frame_code(frame);
    struct code_sites *sites = code_extra(code, known_sites.index);
    return LIKELY(sites && is_of_this_recording(sites)) ? sites : first_sight_of_code(frame);
}

static inline uint32_t site_at(const struct place *place)
{
    return __atomic_load_n(&place->site, __ATOMIC_ACQUIRE);
}

static inline bool is_in_sight(const struct code_sites *sites, uint32_t instruction)
{
    return sites && is_of_this_recording(sites) && instruction < sites->count &&
           site_at(&sites->places[instruction]);
}

/* Site and stack of a frame; NULL if memory is short. */
static inline struct place *place_of(frame *frame, uint32_t *own_code)
{
    PyCodeObject *code = frame_code(frame);
    uint32_t instruction = (uint32_t)frame_instruction(frame);
    struct code_sites *sites = code_extra(code, known_sites.index);
    if (UNLIKELY(!is_in_sight(sites, instruction)))
        return first_sight(frame, sites, instruction, own_code);
    *own_code = sites->own;
    return &sites->places[instruction];
}

/* The stack of this site called from an outer one (0: none matters); 0 if there is no room. Mostly a site is called from
   where it was called last. */
VISIBLE uint32_t new_stack_at(struct place *place, uint32_t outer);

static inline uint32_t stack_at(struct place *place, uint32_t outer)
{
    uint64_t seen = __atomic_load_n(&place->seen, __ATOMIC_RELAXED);
    return LIKELY(seen >> 32 == outer && (uint32_t)seen) ? (uint32_t)seen : new_stack_at(place, outer);
}

/* The number of a frame's site, or 0, and whether its code is the program's own, by what hangs on it at `index`. */
typedef uint32_t site_finder(frame *frame, int index, uint32_t *own_code);

/* The stack from `frame` outward; not farther than the first own code unless the whole is wanted. */
uint32_t stack_by(site_finder *find, frame *frame, int index, bool whole);

/* The stack from `frame` outward, not farther than the first own code. */
VISIBLE uint32_t stack_of(frame *frame);

/* The stack of the call being made: its site alone when that is in own code. */
static inline uint32_t stack_here(PyThreadState *state)
{
    uint32_t own_code = 0;
    frame *frame = LIKELY(recorder.stack_kept) ? frame_innermost(state) : NULL;
    if (UNLIKELY(!frame))
        return 0;
    struct place *place = place_of(frame, &own_code);
    return LIKELY(place && own_code) ? stack_at(place, 0) : stack_of(frame);
}

/* The same as stack_here, in another interpreter than the one that is recorded in full. */
VISIBLE uint32_t stack_elsewhere(PyThreadState *state);

/* The whole stack of the call being made; own cost. */
VISIBLE uint32_t whole_stack_here(void);

/* The calling thread's state if it runs in the interpreter that is recorded in full: another interpreter may have a
   lock of its own, and only the first one's orders the data beside the recorder. */
static inline PyThreadState *recorded_state(void)
{
    PyThreadState *state = running_state();
    return LIKELY(state && state->interp == known_sites.interpreter) ? state : NULL;
}
