#include "coverage/probe_layout.h"

#if !HAS_MONITORING

#include <stdlib.h>

/* By instruction, what jumps there: nothing, only the one after it, or others. */
enum arrival { NOT_REACHED, FROM_BEHIND, FROM_BEFORE };

static void note_arrival(uint8_t *arrivals, uint32_t target, uint32_t from)
{
    uint8_t how = from > target ? FROM_BEHIND : FROM_BEFORE;
    if (arrivals[target] < how)
        arrivals[target] = how;
}

static uint8_t *arrivals_of(const struct bytecode *code)
{
    uint8_t *arrivals = calloc(code->units + 1, 1);
    if (!arrivals)
        return NULL;
    for (uint32_t unit = 0; unit < code->units; unit++) {
        if (code->targets[unit] != NO_JUMP)
            note_arrival(arrivals, code->targets[unit], unit);
        if (code->handlers[unit] != NO_JUMP)
            note_arrival(arrivals, code->handlers[unit], unit);
    }
    /* awaiting goes in a circle by instructions that `bytecode` does not take for jumps */
    for (uint32_t unit = 0; unit < code->units; unit++)
        if (code->opcodes[unit] == SEND || code->opcodes[unit] == RESUME)
            arrivals[unit] = FROM_BEFORE;
    return arrivals;
}

/* Others look at these in a frame that is suspended. */
static bool is_looked_at(uint8_t opcode)
{
    return opcode == RESUME || opcode == SEND || opcode == ASYNC_GEN_WRAP || opcode == JUMP_BACKWARD_NO_INTERRUPT ||
           opcode == RETURN_GENERATOR || opcode == CACHE;
}

/* Continues with the next instruction, whatever happens. */
static bool goes_on(uint8_t opcode)
{
    return opcode == NOP || opcode == LOAD_FAST || opcode == LOAD_CONST || opcode == STORE_FAST || opcode == PUSH_NULL ||
           opcode == RESUME || opcode == EXTENDED_ARG;
}

/* Pushes before it takes anything away: there is room on the stack. */
static bool pushes(uint8_t opcode)
{
    return opcode == LOAD_FAST || opcode == LOAD_CONST || opcode == LOAD_GLOBAL || opcode == LOAD_NAME || opcode == PUSH_NULL ||
           opcode == LOAD_DEREF || opcode == LOAD_CLOSURE || opcode == LOAD_BUILD_CLASS || opcode == LOAD_ASSERTION_ERROR ||
           opcode == LOAD_CLASSDEREF || opcode == PUSH_EXC_INFO;
}

struct layout {
    const struct bytecode *code;
    const struct covered_plan *plan;
    const uint8_t *arrivals;
    struct probes *probes;
    bool lacks_room; /* on the stack */
};

/* How many units the jump to the stub takes. */
static uint32_t units_to_stub(const struct layout *layout, uint32_t unit)
{
    uint32_t stub = layout->probes->first_stub + layout->probes->count * STUB_UNITS;
    return stub - (unit + 1) <= FAR_UNITS ? 1 : 2;
}

static bool begins_place(const struct layout *layout, uint32_t unit)
{
    return layout->plan->place_of[unit] != layout->plan->place_of[unit - 1];
}

/* Whether `units` from here on can be replaced: nothing may reach the second except through the first. */
static bool is_free(const struct layout *layout, uint32_t unit, uint32_t units)
{
    if (is_looked_at(layout->code->opcodes[unit]))
        return false;
    if (units == 1)
        return true;
    uint32_t second = unit + 1;
    if (second >= layout->code->units || layout->arrivals[second] != NOT_REACHED)
        return false;
    return layout->code->opcodes[second] == CACHE ||
           (!begins_place(layout, second) && !is_looked_at(layout->code->opcodes[second]));
}

static bool is_near(const struct layout *layout)
{
    return layout->probes->first_stub + layout->probes->count * STUB_UNITS < MOST_AWAY;
}

/* Whether the next instruction is certainly executed after this one, and first reached from it. */
static bool follows(const struct layout *layout, uint32_t unit)
{
    uint32_t next = unit + 1;
    return next < layout->code->units && goes_on(layout->code->opcodes[unit]) &&
           layout->arrivals[next] != FROM_BEFORE && layout->code->opcodes[next] != CACHE;
}

static void leave_out(struct layout *layout, uint32_t place)
{
    layout->probes->is_incomplete = true;
    layout->probes->is_late |= place == 1;
}

/* Put a probe for a place here or, where that cannot be, at the next instruction that follows: then it may be one for the next
   places as well. */
static void put_probe(struct layout *layout, uint32_t unit, uint32_t place)
{
    struct probe probe = {.place = place, .places = 1};
    for (; !is_near(layout) || !is_free(layout, unit, units_to_stub(layout, unit)); unit++) {
        if (!is_near(layout) || !follows(layout, unit)) {
            leave_out(layout, place);
            return;
        }
        if (layout->plan->place_of[unit + 1] == place + probe.places && begins_place(layout, unit + 1))
            probe.places++;
    }
    probe.unit = unit;
    probe.units = (uint8_t)units_to_stub(layout, unit);
    layout->lacks_room |= !pushes(layout->code->opcodes[unit]);
    layout->probes->probe[layout->probes->count++] = probe;
}

/* Is there another way into the place, which does not pass its beginning? */
static bool is_jumped_into(const struct layout *layout, uint32_t unit)
{
    return !layout->plan->has_parts && layout->arrivals[unit] == FROM_BEFORE &&
           !is_looked_at(layout->code->opcodes[unit]) && is_free(layout, unit, units_to_stub(layout, unit));
}

static void lay_out(struct layout *layout)
{
    const struct probes *probes = layout->probes;
    uint32_t last = 0; /* the last place that was seen to */
    for (uint32_t unit = 1; unit < layout->plan->units; unit++) {
        uint32_t place = layout->plan->place_of[unit];
        bool begins = begins_place(layout, unit) && place > last;
        if (place && (begins || is_jumped_into(layout, unit)))
            put_probe(layout, unit, place);
        if (!probes->count)
            continue;
        const struct probe *probe = &probes->probe[probes->count - 1];
        uint32_t reach = probe->place + probe->places - 1;
        last = reach > last ? reach : last;
        unit = probe->unit > unit ? probe->unit : unit;
    }
}

static void fill_probes(struct probes *probes, const struct bytecode *code, const struct covered_plan *plan, const uint8_t *arrivals)
{
    struct layout layout = {code, plan, arrivals, probes, false};
    probes->first_stub = code->units;
    lay_out(&layout);
    probes->lacks_room = layout.lacks_room;
}

static struct probes *fitted(struct probes *probes)
{
    struct probes *fitting = realloc(probes, sizeof *probes + probes->count * sizeof *probes->probe);
    return fitting ? fitting : probes;
}

struct probes *probes_laid_out(const struct bytecode *code, const struct covered_plan *plan)
{
    uint8_t *arrivals = code->units < MOST_UNITS ? arrivals_of(code) : NULL;
    struct probes *probes = arrivals ? calloc(1, sizeof *probes + (code->units + 1) * sizeof *probes->probe) : NULL;
    if (probes)
        fill_probes(probes, code, plan, arrivals);
    free(arrivals);
    return probes ? fitted(probes) : NULL;
}

#endif
