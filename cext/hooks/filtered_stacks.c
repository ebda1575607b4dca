#include "hooks/filtered_stacks.h"

#include <string.h>

#include "core/filter.h"
#include "core/recorder.h"
#include "core/visible.h"
#include "cpython/frame.h"
#include "cpython/sites.h"
#include "hooks/filtered_places.h"

enum { SEEN_STACKS = 32, SEEN_FRAMES = 64 };

struct seen_frame {
    uintptr_t first, bytes; /* it is at one of these instructions */
};

struct seen_stack {
    uint32_t serial, recording; /* of the decision, and of the recorder; below, what is known by these */
    uint32_t found;             /* bits, of all that are kept */
    uint32_t frames;            /* 0 for none */
    bool cut;                   /* there were more, which cannot be compared */
    struct seen_frame frame[SEEN_FRAMES];
};

static struct seen_stack seen_stacks[SEEN_STACKS];
static bool stacks_were_seen; /* if not, leave their memory untouched */

void seen_stacks_forget(void)
{
    if (!stacks_were_seen)
        return;
    for (unsigned each = 0; each < SEEN_STACKS; each++)
        seen_stacks[each].frames = 0;
}

static struct seen_stack *seen_stack_at(frame *innermost)
{
    uintptr_t code = (uintptr_t)frame_code(innermost);
    return &seen_stacks[(code >> 4 ^ code >> 10) % SEEN_STACKS];
}

/* A stack with that serial and the codes that run now, or NULL. `behind`: the frame after the cached ones, or
   NULL. */
static const struct seen_stack *seen_stack(frame *innermost, uint32_t serial, frame **behind)
{
    const struct seen_stack *seen = seen_stack_at(innermost);
    const struct seen_frame *known = seen->frame, *end = known + seen->frames;
    frame *each = innermost;
    if (IS_FREE_THREADED) /* others write there */
        return NULL;
    if (UNLIKELY(known == end || seen->serial != serial || seen->recording != recorder.serial))
        return NULL;
    for (; known < end; known++, each = frame_previous(each))
        if (UNLIKELY(!each || (uintptr_t)frame_place(each) - known->first >= known->bytes))
            return NULL;
    *behind = each;
    return LIKELY(!each) || seen->cut || seen->found & WITHIN_LEFT_OUT ? seen : NULL;
}

/* A frame that is hidden for as long as it is there: no frame of code that may be freed is at that place. */
static bool frame_stays_hidden(frame *frame)
{
    if (frame_is_interpreters(frame))
        return true;
    PyCodeObject *code = frame_code(frame);
    return code_is_immortal(code) && !(code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR));
}

static void seen_begin(struct seen_stack *seen)
{
    seen->found = seen->frames = 0;
    seen->cut = false;
}

/* Another frame, and the bits of its code; none after one that could not be compared. `seen` may be NULL. */
static void seen_add(struct seen_stack *seen, frame *frame, unsigned bits)
{
    struct seen_frame known = {.first = (uintptr_t)frame_place(frame), .bytes = sizeof(_Py_CODEUNIT)};
    uintptr_t place = known.first;
    if (!seen || seen->cut)
        return;
    if (!frame_is_hidden(frame)) {
        PyCodeObject *code = frame_code(frame);
        uintptr_t begin = (uintptr_t)code_begin(code);
        known.first = begin + (uintptr_t)code->_co_firsttraceable * sizeof(_Py_CODEUNIT);
        known.bytes = begin + (uintptr_t)Py_SIZE(code) * sizeof(_Py_CODEUNIT) - known.first;
        seen->cut = place - known.first >= known.bytes;
    } else
        seen->cut = !frame_stays_hidden(frame);
    seen->cut |= seen->frames == SEEN_FRAMES;
    if (seen->cut)
        return;
    seen->found |= bits;
    seen->frame[seen->frames++] = known;
}

static void seen_keep(frame *innermost, const struct seen_stack *seen, uint32_t serial)
{
    struct seen_stack *place = seen_stack_at(innermost);
    if (IS_FREE_THREADED)
        return;
    stacks_were_seen = true;
    memcpy(place, seen, offsetof(struct seen_stack, frame) + seen->frames * sizeof *seen->frame);
    place->serial = serial;
    place->recording = recorder.serial;
}

static __attribute__((noinline)) unsigned decide_within(frame *frame, struct code_sites *sites, uint32_t serial)
{
    uint32_t within = decided(serial, decide(frame, filter_within));
    __atomic_store_n(&sites->within, within, __ATOMIC_RELAXED);
    return within;
}

static unsigned within_of(frame *frame, struct code_sites *sites, uint32_t serial)
{
    uint32_t within = __atomic_load_n(&sites->within, __ATOMIC_RELAXED);
    return LIKELY(is_decided(within, serial)) ? within : decide_within(frame, sites, serial);
}

/* What the functions from that frame out are to the filter: bits. Not farther than one that is left out. */
static __attribute__((noinline)) unsigned within_from(frame *frame, struct seen_stack *seen, uint32_t serial)
{
    unsigned found = 0;
    for (; frame && !(found & WITHIN_LEFT_OUT); frame = frame_previous(frame)) {
        bool hidden = frame_is_hidden(frame);
        struct code_sites *sites = hidden ? NULL : sites_of(frame);
        unsigned bits = sites ? within_of(frame, sites, serial) : 0;
        bits &= WITHIN_ASKED | WITHIN_LEFT_OUT;
        found |= bits;
        if (sites || hidden)
            seen_add(seen, frame, bits);
        else if (seen)
            seen->cut = true;
    }
    return found;
}

static __attribute__((noinline)) unsigned within_anew(frame *innermost, uint32_t serial)
{
    struct seen_stack seen;
    seen_begin(&seen);
    unsigned found = within_from(innermost, &seen, serial);
    seen_keep(innermost, &seen, serial);
    return found;
}

bool within_passes(PyThreadState *state)
{
    frame *innermost = frame_running(state), *behind;
    if (UNLIKELY(!innermost))
        return !filter_says(&filter.asks_within);
    uint32_t serial = filter_serial();
    const struct seen_stack *seen = seen_stack(innermost, serial, &behind);
    unsigned found = LIKELY(seen) ? seen->found : within_anew(innermost, serial);
    if (UNLIKELY(seen && behind && !(found & WITHIN_LEFT_OUT)))
        found |= within_from(behind, NULL, serial);
    return !(found & WITHIN_LEFT_OUT) && (!filter_says(&filter.asks_within) || found & WITHIN_ASKED);
}
