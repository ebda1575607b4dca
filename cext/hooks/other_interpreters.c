#include "hooks/other_interpreters.h"

#include "cpython/sites.h"
#include "hooks/address_detail.h"
#include "hooks/file_lock_detail.h"
#include "hooks/filtering.h"
#include "hooks/hot_path.h"
#include "hooks/path_detail.h"

#define ONE(...) +1
enum { MOVES_COUNT = 1 MOVES(ONE), WAITS_COUNT = WAITS_rows + 1 };

/* What the end of a call looks at: nothing but how much was moved, and from when on a wait is recorded. */
static struct slot plain_slots[MOVES_COUNT][WAITS_COUNT];

void other_interpreters_begin(void)
{
    for (unsigned moves = 0; moves < MOVES_COUNT; moves++)
        for (unsigned waits = 0; waits < WAITS_COUNT; waits++)
            plain_slots[moves][waits] = (struct slot){
                .moves = moves == MOVES_cursor ? MOVES_none : (uint8_t)moves,
                .waits = waits == WAITS_rows ? WAITS_not : (uint8_t)waits,
            };
}

/* Given by position, or the object itself; arguments by name are not searched. */
static PyObject *plain_subject(const struct call *call)
{
    const struct slot *slot = call->slot;
    if (slot->attributes)
        return NULL;
    return slot->subject == SUBJECT_OWNER ? call->owner : argument_of(call, slot->subject);
}

static uint32_t plain_detail(const struct call *call, const struct descriptor *known)
{
    PyObject *subject = plain_subject(call);
    if (call->slot->traffic || !subject)
        return known->name;
    if (is_statement(call->slot->detail))
        return statement_detail(subject, dialect_of(call->slot->detail));
    switch ((enum detail_kind)call->slot->detail) {
    case DETAIL_path:
    case DETAIL_destination:
        return PyLong_CheckExact(subject) ? descriptor_look(descriptor_of_number(subject)).name : path_text(subject, KIND_file);
    case DETAIL_address:
        return address_detail(subject);
    case DETAIL_descriptor:
        return known->name;
    case DETAIL_flock:
    case DETAIL_lockf:
    case DETAIL_fcntl:
        return file_lock_detail(call, descriptor_elsewhere(subject));
    default:
        return 0;
    }
}

/* What was known about the descriptors that the call changes is void. */
static void forget_changed(const struct call *call)
{
    if (call->slot->effect == EFFECT_none || call->slot->traffic)
        return;
    descriptor_forget(call->descriptor);
    for (Py_ssize_t place = 0; place < call->count; place++)
        if (PyLong_CheckExact(call->arguments[place]))
            descriptor_forget(descriptor_of_number(call->arguments[place]));
}

/* Rules by call site, and by what surrounds the call, apply to the interpreter that is recorded in full. */
static bool is_filtered(const struct slot *slot, uint32_t intrinsic, const struct thread *thread)
{
    if (UNLIKELY(chosen.one_in) && is_passed_over(thread))
        return true;
    return UNLIKELY(filter_is_on()) && (filter_says(&filter.looks) || filter_says(&filter.by_block) || !passes_late(slot, intrinsic, true));
}

static bool is_counted_or_off(const struct slot *slot, struct thread *thread, uint32_t intrinsic)
{
    if (LIKELY(!slot_lowered(slot)) || is_timed(slot, intrinsic))
        return false;
    if (slot_level(slot, intrinsic - slot->intrinsic) == LEVEL_count)
        recorder_count(thread, intrinsic);
    return true;
}

static bool begin_plain(struct call *call, struct thread *thread, PyThreadState *state)
{
    const struct slot *slot = call->slot;
    bool about_descriptor = slot->traffic || slot->effect || slot->detail == DETAIL_descriptor;
    PyObject *subject = about_descriptor ? plain_subject(call) : NULL;
    call->descriptor = descriptor_elsewhere(subject ? subject : about_descriptor ? call->owner : NULL);
    struct descriptor known = descriptor_look(call->descriptor);
    uint32_t intrinsic = slot->intrinsic + (slot->traffic ? kind_of_traffic(slot, known.known ? &known : NULL, thread) : 0);
    uint32_t detail = plain_detail(call, &known);
    forget_changed(call);
    if (is_filtered(slot, intrinsic, thread) || is_counted_or_off(slot, thread, intrinsic))
        return false;
    call->slot = &plain_slots[slot->moves][slot->waits];
    return span_begin(&call->span, thread, intrinsic, stack_elsewhere(state), detail);
}

static uint32_t warned;

bool begin_elsewhere(struct call *call, const struct slot *slot, PyObject *owner, PyObject *const *arguments, Py_ssize_t count)
{
    PyThreadState *state = running_state();
    struct thread *thread = slot->effect < EFFECT_fork ? recorded_thread(state) : NULL;
    if (!thread || thread->quiet || (slot->choice == CHOICE_outermost && inside(thread, KIND_db)))
        return false;
    recorder_warn_once(&warned, "in other interpreters only calls of C functions are recorded");
    *call = (struct call){.slot = slot, .owner = owner, .arguments = arguments, .count = count};
    return begin_plain(call, thread, state);
}
