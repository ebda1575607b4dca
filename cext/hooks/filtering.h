/* Whether a call is recorded, as the filter has it: first what costs least, and what is of a call site once for each.

   A call that is made from the standard library or an installed package is of the line of the program's own code that
   it was made for, as in reports. */
#pragma once

#define PY_SSIZE_T_CLEAN

#include "hooks/call.h"
#include "core/transaction_sampling.h"
#include "core/filter.h"
#include "core/recorder.h"
#include "hooks/filtered_stacks.h"
#include "cpython/sites.h"

/* What was decided of a place, below the filter's serial. */
enum { DECIDED_BITS = 2, LEFT_OUT = 1 };

static inline uint32_t decided(unsigned bits)
{
    return filter.serial << DECIDED_BITS | bits;
}

static inline bool is_decided(uint32_t verdict)
{
    return (verdict ^ decided(0)) >> DECIDED_BITS == 0;
}

static const char *text_or_null(PyObject *text)
{
    const char *found = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    if (!found)
        PyErr_Clear();
    return found;
}

static struct call_site call_site_of(frame *here)
{
    PyCodeObject *code = frame_code(here);
    PyObject *names = here->f_globals;
    PyObject *module = names && PyDict_CheckExact(names) ? PyDict_GetItemString(names, "__name__") : NULL;
    int line = PyCode_Addr2Line(code, (int)((size_t)frame_instruction(here) * sizeof(_Py_CODEUNIT)));
    return (struct call_site){
        .module = text_or_null(module),
        .file = text_or_null(code->co_filename),
        .function = text_or_null(code->co_qualname),
        .line = line > 0 ? (uint32_t)line : 0,
    };
}

static unsigned decide_site(const struct call_site *site)
{
    return filter_site(site) ? 0 : LEFT_OUT;
}

/* An exception that is set stays as it is. */
static __attribute__((noinline)) unsigned decide(frame *here, unsigned (*by)(const struct call_site *))
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    struct call_site site = call_site_of(here);
    unsigned bits = by(&site);
    PyErr_Restore(type, value, traceback);
    return bits;
}

/* The place of the innermost frame of the program's own code, else of the innermost; NULL where there is none. */
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

static bool site_passes(PyThreadState *state)
{
    static const struct call_site nowhere;
    frame *where;
    struct place *place = calling_place(state, &where);
    if (UNLIKELY(!place))
        return filter_site(&nowhere);
    if (UNLIKELY(!is_decided(place->verdict)))
        place->verdict = decided(decide(where, decide_site));
    return !(place->verdict & LEFT_OUT);
}

static __attribute__((noinline)) unsigned within_of(frame *frame, struct code_sites *sites)
{
    sites->within = decided(decide(frame, filter_within));
    return sites->within;
}

/* What the functions from that frame out are to the filter: bits. Not farther than one that is left out. */
static __attribute__((noinline)) unsigned within_from(frame *frame, struct seen_stack *seen)
{
    unsigned found = 0;
    for (; frame && !(found & WITHIN_LEFT_OUT); frame = frame->previous) {
        bool hidden = frame_is_hidden(frame);
        struct code_sites *sites = hidden ? NULL : sites_of(frame);
        unsigned bits = !sites ? 0 : LIKELY(is_decided(sites->within)) ? sites->within : within_of(frame, sites);
        bits &= WITHIN_ASKED | WITHIN_LEFT_OUT;
        found |= bits;
        if (sites || hidden)
            seen_add(seen, frame, bits);
        else if (seen)
            seen->cut = true;
    }
    return found;
}

static __attribute__((noinline)) unsigned within_anew(frame *innermost)
{
    struct seen_stack seen;
    seen_begin(&seen);
    unsigned found = within_from(innermost, &seen);
    seen_keep(innermost, &seen, decided(0));
    return found;
}

/* Is one of the functions that run one of those asked for, and none one of those left out? */
static inline bool within_passes(PyThreadState *state)
{
    frame *innermost = frame_running(state), *behind;
    if (UNLIKELY(!innermost))
        return !filter.asks_within;
    const struct seen_stack *seen = seen_stack(innermost, decided(0), &behind);
    unsigned found = LIKELY(seen) ? seen->found : within_anew(innermost);
    if (UNLIKELY(seen && behind && !(found & WITHIN_LEFT_OUT)))
        found |= within_from(behind, NULL);
    return !(found & WITHIN_LEFT_OUT) && (!filter.asks_within || found & WITHIN_ASKED);
}

/* What is not of the intrinsic; each class of rules only where there is one. */
static inline bool is_let_pass(struct thread *thread, PyThreadState *state)
{
    if (!filter.looks)
        return true;
    if (filter.by_block && filter_block_is_over(recorder.control))
        return false;
    if (filter.by_thread && !filter_thread(thread))
        return false;
    if (filter.by_time && !filter_time())
        return false;
    if (filter.by_site && !site_passes(state))
        return false;
    if (filter.by_transaction && !filter_transaction(thread->record))
        return false;
    return !filter.by_within || within_passes(state);
}

/* Are calls of that number left out wherever they are made? */
static inline bool is_left_out(uint32_t intrinsic)
{
    return UNLIKELY(filter.on) && (filter.none || (intrinsic < COUNTED_NUMBERS && filter.left_out[intrinsic]));
}

/* May a call of that intrinsic be recorded? What starts processes is, for descendants are followed by it. */
static inline bool passes_filter(const struct slot *slot, uint32_t intrinsic, struct thread *thread, PyThreadState *state)
{
    if (is_always_timed(slot))
        return true;
    if (is_left_out(intrinsic) || !is_let_pass(thread, state))
        return false;
    return !filter.by_block || filter_block(recorder.control);
}

/* The same of one whose kind is known later, where `passed` tells what is not of the kind. */
static inline bool passes_late(const struct slot *slot, uint32_t intrinsic, bool passed)
{
    if (is_always_timed(slot))
        return true;
    return passed && !is_left_out(intrinsic) && (!filter.by_block || filter_block(recorder.control));
}

/* May a transaction? Where calls are chosen by transactions, these have to be known. */
static inline bool transaction_passes(const struct slot *slot, struct thread *thread, PyThreadState *state)
{
    if (filter.by_transaction || slot->sampled)
        return !filter.none;
    return passes_filter(slot, slot->intrinsic, thread, state);
}

/* May a call, as far as it is known before all else: within a transaction that is passed over nothing is recorded but what
   starts processes, for the same reason. */
static inline bool passes_early(const struct slot *slot, uint32_t intrinsic, bool simple, struct thread *thread,
                                PyThreadState *state)
{
    if (slot->sampled)
        return !filter.on || transaction_passes(slot, thread, state);
    if (chosen.one_in && !is_always_timed(slot) && is_passed_over(thread))
        return false;
    if (!filter.on)
        return true;
    return simple ? passes_filter(slot, intrinsic, thread, state) : is_let_pass(thread, state);
}

/* All of its calls, of whatever kind they turn out to be, but for those numbered `but`? */
static bool is_closed(const struct slot *slot, uint32_t but)
{
    for (uint32_t number = slot->intrinsic; number < slot->intrinsic + slot->numbers; number++)
        if (number != but && !is_left_out(number))
            return false;
    return true;
}

/* What its calls change, or start, is to be known even where they are not recorded; but what is sent and received only of
   sockets. */
static void slot_watch(struct slot *slot)
{
    bool changes = slot->lock || (slot->effect != EFFECT_none && !slot->traffic);
    bool looks = filter.looks || chosen.one_in;
    slot->watched = WATCHED_not;
    if ((!filter.on && !chosen.one_in) || slot->sampled || !slot->through || !slot->numbers || changes || keeps_dialogue(slot))
        return;
    if (is_closed(slot, 0))
        slot->watched = WATCHED_closed;
    else if (slot->kinds[KIND_db] && is_closed(slot, slot->intrinsic + slot->kinds[KIND_db]))
        slot->watched = WATCHED_outside_db;
    else if (looks)
        slot->watched = WATCHED_look;
}

static __attribute__((noinline)) bool is_left_out_at_once(const struct slot *slot)
{
    if (slot->effect != EFFECT_none && networks_known)
        return false;
    if (slot->watched == WATCHED_closed)
        return true;
    PyThreadState *state = recorded_state();
    struct thread *thread = state ? current_thread : NULL;
    if (!thread || !thread->recording || thread->quiet)
        return false;
    if (slot->watched == WATCHED_outside_db)
        return !inside(thread, KIND_db);
    if (UNLIKELY(chosen.one_in) && !thread->marked && is_passed_over(thread))
        return true;
    if (filter.only_within)
        return !within_passes(state);
    return filter.on && !is_let_pass(thread, state);
}
