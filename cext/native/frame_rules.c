#define _GNU_SOURCE
#include "native/frame_rules.h"

#include <string.h>

/* Reads the bytes of a copy in order, and none after its end. */
struct reader {
    const uint8_t *at, *end;
    uintptr_t moved; /* from the copy to the original */
    bool failed;
};

static uint64_t read_bytes(struct reader *from, size_t bytes)
{
    uint64_t value = 0;
    if (bytes > (size_t)(from->end - from->at)) {
        from->failed = true;
        from->at = from->end;
        return 0;
    }
    memcpy(&value, from->at, bytes);
    from->at += bytes;
    return value;
}

static void skip(struct reader *from, uint64_t bytes)
{
    uint64_t left = (uint64_t)(from->end - from->at);
    from->failed |= bytes > left;
    from->at += bytes < left ? bytes : left;
}

/* LEB128: seven bits a byte, least significant first; the last byte has the sign. */
static uint64_t read_number(struct reader *from, bool is_signed)
{
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = read_bytes(from, 1);
        value |= shift < 64 ? (byte & 0x7f) << shift : 0;
        shift += 7;
    } while (byte & 0x80);
    if (is_signed && shift < 64 && byte & 0x40)
        value |= ~0ull << shift;
    return value;
}

static uint64_t read_unsigned(struct reader *from)
{
    return read_number(from, false);
}

static int64_t read_signed(struct reader *from)
{
    return (int64_t)read_number(from, true);
}

/* --- encoded addresses (DW_EH_PE_…) */

enum { FORM_whole = 0x00, FORM_two = 0x02, FORM_four = 0x03, FORM_eight = 0x04, FORM_signed = 0x08 };
enum { FORM_OF_NUMBER = 0x0f, FORM_FROM_HERE = 0x10, FORM_FROM_TABLE = 0x30, FORM_OF_START = 0x70 };

static uint64_t widen(uint64_t value, size_t bytes, bool is_signed)
{
    uint64_t sign = 1ull << (8 * bytes - 1);
    return is_signed && bytes < sizeof value && value & sign ? value | ~(sign | (sign - 1)) : value;
}

static size_t bytes_of_form(uint8_t form)
{
    switch (form & FORM_OF_NUMBER & ~FORM_signed) {
    case FORM_two: return 2;
    case FORM_four: return 4;
    case FORM_eight: return 8;
    default: return (form & FORM_OF_NUMBER) == FORM_whole ? sizeof(uintptr_t) : 0;
    }
}

/* Without adding what it is relative to. */
static uint64_t read_plain(struct reader *from, uint8_t form)
{
    size_t bytes = bytes_of_form(form);
    from->failed |= !bytes;
    return bytes ? widen(read_bytes(from, bytes), bytes, form & FORM_signed) : 0;
}

static uintptr_t read_address(struct reader *from, uint8_t form, uintptr_t table)
{
    uintptr_t here = (uintptr_t)from->at + from->moved, value = (uintptr_t)read_plain(from, form);
    uint8_t start = form & FORM_OF_START;
    from->failed |= start && start != FORM_FROM_HERE && start != FORM_FROM_TABLE;
    return value + (start == FORM_FROM_HERE ? here : start == FORM_FROM_TABLE ? table : 0);
}

/* --- finding the description of an address */

struct description {
    uintptr_t begin, end; /* the code */
    struct reader steps;  /* how the rule changes from instruction to instruction */
};

/* What several descriptions share (a CIE; a description is an FDE). */
struct common {
    uint64_t code_unit;
    int64_t data_unit;
    uint8_t form;
    bool has_more;   /* descriptions have additional data, with its length */
    bool is_handler; /* it returns to where a signal arrived */
    struct reader steps;
};

static bool copy(const struct frame_table *frames, void *to, uintptr_t from, size_t bytes)
{
    bool is_inside = is_in(frames->all, from) && bytes <= frames->all.end - from;
    return is_inside && frames->copy(to, (const void *)from, bytes);
}

static struct reader reader_of(const uint8_t *begin, size_t bytes, uintptr_t original)
{
    return (struct reader){begin, begin + bytes, original - (uintptr_t)begin, !bytes};
}

/* An entry of the section, without its length. */
static struct reader entry_at(const struct frame_table *frames, uintptr_t address, uint8_t *to, size_t room)
{
    uint32_t bytes = 0;
    bool is_read = copy(frames, &bytes, address, sizeof bytes) && bytes <= room && copy(frames, to, address + sizeof bytes, bytes);
    return reader_of(to, is_read ? bytes : 0, address + sizeof bytes);
}

/* The table is sorted by address: the code's address and that of its description, both relative to the table's head. */
struct table_entry {
    int32_t begin, description;
};

struct table {
    uintptr_t first;
    uint64_t count;
};

/* False if there is none, or if it has a form that no linker writes. */
static bool find_table(const struct frame_table *frames, struct table *table)
{
    struct {
        uint8_t version, section, count, entries;
        int32_t to_section;
        uint32_t entries_count;
    } head;
    bool is_read = copy(frames, &head, (uintptr_t)frames->head, sizeof head);
    table->first = (uintptr_t)frames->head + sizeof head;
    table->count = is_read ? head.entries_count : 0;
    return is_read && head.version == 1 && bytes_of_form(head.section) == sizeof head.to_section && head.count == FORM_four &&
           head.entries == (FORM_FROM_TABLE | FORM_signed | FORM_four);
}

/* The address of the last description whose code begins at or before `address`; 0 if there is none. */
static uintptr_t find_description(const struct frame_table *frames, uintptr_t address)
{
    struct table table;
    struct table_entry entry = {0}, found = {0};
    uintptr_t head = (uintptr_t)frames->head;
    uint64_t first = 0, last = find_table(frames, &table) ? table.count : 0;
    while (first < last) {
        uint64_t middle = first + (last - first) / 2;
        if (!copy(frames, &entry, table.first + middle * sizeof entry, sizeof entry))
            return 0;
        if (head + (uintptr_t)(intptr_t)entry.begin <= address) {
            found = entry;
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    return found.description ? head + (uintptr_t)(intptr_t)found.description : 0;
}

/* The letters after `z` say which additions there are, and in what order. */
static void read_additions(struct reader *entry, const char *letters, struct common *common)
{
    for (; *letters && !entry->failed; letters++)
        if (*letters == 'R')
            common->form = (uint8_t)read_bytes(entry, 1);
        else if (*letters == 'P')
            read_plain(entry, (uint8_t)read_bytes(entry, 1));
        else if (*letters == 'L')
            skip(entry, 1);
        else
            common->is_handler |= *letters == 'S';
}

static bool read_common(struct reader entry, struct common *common)
{
    uint64_t number = read_bytes(&entry, 4), version = read_bytes(&entry, 1);
    const char *letters = (const char *)entry.at;
    skip(&entry, strnlen(letters, (size_t)(entry.end - entry.at)) + 1);
    *common = (struct common){.code_unit = read_unsigned(&entry)};
    common->data_unit = read_signed(&entry);
    if (version == 1)
        skip(&entry, 1);
    else
        read_unsigned(&entry);
    if (entry.failed || number || (version != 1 && version != 3) || (*letters && *letters != 'z'))
        return false;
    common->has_more = *letters == 'z';
    uint64_t bytes = common->has_more ? read_unsigned(&entry) : 0;
    struct reader additions = entry;
    skip(&entry, bytes);
    if (common->has_more)
        read_additions(&additions, letters + 1, common);
    common->steps = entry;
    return !entry.failed && !additions.failed;
}

static bool read_description(const struct frame_table *frames, uintptr_t address, struct frame_copies *copies, struct common *common,
                             struct description *found)
{
    struct reader entry = entry_at(frames, address, copies->description, sizeof copies->description);
    uintptr_t here = (uintptr_t)entry.at + entry.moved;
    uint64_t back = read_bytes(&entry, 4);
    if (entry.failed || !back || !read_common(entry_at(frames, here - back, copies->common, sizeof copies->common), common))
        return false;
    found->begin = read_address(&entry, common->form, 0);
    found->end = found->begin + read_plain(&entry, common->form & FORM_OF_NUMBER);
    if (common->has_more)
        skip(&entry, read_unsigned(&entry));
    found->steps = entry;
    return !entry.failed;
}

/* --- the rule at an address */

#if defined __x86_64__
enum { FRAME_POINTER = 6, STACK_POINTER = 7, RETURN_ADDRESS = 16, RETURN_AT = -8 };
#else
enum { FRAME_POINTER = 10000, STACK_POINTER, RETURN_ADDRESS, RETURN_AT = 0 }; /* of no register: no description is understood */
#endif

enum { DEEPEST = 8 };

struct state {
    struct frame_rule rule;
    bool returns_elsewhere; /* not to the address that the call put on the stack */
};

struct machine {
    const struct common *common;
    struct state now, first, kept[DEEPEST];
    unsigned depth;
    uintptr_t at;
};

static void set_frame(struct machine *machine, uint64_t number, int64_t offset)
{
    struct frame_rule *rule = &machine->now.rule;
    rule->is_known = (number == STACK_POINTER || number == FRAME_POINTER) && offset == (int32_t)offset;
    rule->base = number == STACK_POINTER ? BASE_stack : BASE_pointer;
    rule->frame_at = (int32_t)offset;
}

static void set_frame_at(struct machine *machine, int64_t offset)
{
    struct frame_rule *rule = &machine->now.rule;
    rule->is_known &= rule->base != BASE_kept && offset == (int32_t)offset;
    rule->frame_at = (int32_t)offset;
}

/* The caller's value of that register is saved at `offset` from the frame's end. */
static void set_kept(struct machine *machine, uint64_t number, int64_t offset)
{
    struct frame_rule *rule = &machine->now.rule;
    if (number == RETURN_ADDRESS)
        machine->now.returns_elsewhere = offset != RETURN_AT;
    if (number != FRAME_POINTER)
        return;
    rule->pointer = offset == (int16_t)offset ? POINTER_in_frame : POINTER_lost;
    rule->pointer_at = (int16_t)offset;
}

/* The caller's value is in a place that is not understood, or undefined. */
static void set_lost(struct machine *machine, uint64_t number, bool is_undefined)
{
    if (number == RETURN_ADDRESS) {
        machine->now.rule.is_last = is_undefined;
        machine->now.returns_elsewhere = !is_undefined;
    } else if (number == FRAME_POINTER) {
        machine->now.rule.pointer = POINTER_lost;
    }
}

static void set_same(struct machine *machine, uint64_t number)
{
    if (number == FRAME_POINTER)
        machine->now.rule.pointer = POINTER_same;
}

static void set_first(struct machine *machine, uint64_t number)
{
    const struct state *first = &machine->first;
    struct frame_rule *rule = &machine->now.rule;
    if (number == RETURN_ADDRESS) {
        rule->is_last = first->rule.is_last;
        machine->now.returns_elsewhere = first->returns_elsewhere;
    } else if (number == FRAME_POINTER) {
        rule->pointer = first->rule.pointer;
        rule->pointer_at = first->rule.pointer_at;
    }
}

/* A DWARF expression. Only the form that compilers write for a function that aligns its stack is understood: an address at an
   offset from the frame pointer, or the word in memory there. */
struct computed {
    bool is_known, is_in_memory;
    int64_t offset;
};

static struct computed read_computation(struct reader *from)
{
    enum { BESIDE_REGISTER_0 = 0x70, IN_MEMORY = 0x06 };
    uint64_t bytes = read_unsigned(from);
    struct reader steps = *from;
    skip(from, bytes);
    if (from->failed)
        return (struct computed){.is_known = false};
    steps.end = steps.at + bytes;
    bool is_known = read_bytes(&steps, 1) == BESIDE_REGISTER_0 + FRAME_POINTER;
    int64_t offset = read_signed(&steps);
    bool is_in_memory = steps.at < steps.end && *steps.at == IN_MEMORY;
    skip(&steps, is_in_memory);
    is_known = is_known && !steps.failed && steps.at == steps.end;
    return (struct computed){is_known, is_in_memory, offset};
}

static void set_frame_computed(struct machine *machine, struct computed found)
{
    set_frame(machine, FRAME_POINTER, found.offset);
    machine->now.rule.base = BASE_kept;
    machine->now.rule.is_known &= found.is_known && found.is_in_memory;
}

static void set_kept_computed(struct machine *machine, uint64_t number, struct computed found)
{
    struct frame_rule *rule = &machine->now.rule;
    if (number != FRAME_POINTER || !found.is_known || found.is_in_memory || found.offset != (int16_t)found.offset) {
        set_lost(machine, number, false);
        return;
    }
    rule->pointer = POINTER_by_base;
    rule->pointer_at = (int16_t)found.offset;
}

static void keep(struct machine *machine, struct reader *steps)
{
    steps->failed |= machine->depth == DEEPEST;
    if (!steps->failed)
        machine->kept[machine->depth++] = machine->now;
}

static void take_back(struct machine *machine, struct reader *steps)
{
    steps->failed |= !machine->depth;
    if (!steps->failed)
        machine->now = machine->kept[--machine->depth];
}

static void advance(struct machine *machine, uint64_t units)
{
    machine->at += units * machine->common->code_unit;
}

/* Steps with a number in their lower bits; DWARF calls steps DW_CFA_…. */
enum { STEP = 0xc0, ADVANCE = 0x40, OFFSET = 0x80, RESTORE = 0xc0 };
enum {
    NOTHING, SET_PLACE, ADVANCE_1, ADVANCE_2, ADVANCE_4, OFFSET_EXTENDED, RESTORE_EXTENDED, UNDEFINED, SAME_VALUE, REGISTER,
    REMEMBER, TAKE_BACK, FRAME, FRAME_REGISTER, FRAME_OFFSET, FRAME_COMPUTED, COMPUTED, OFFSET_SIGNED, FRAME_SIGNED, FRAME_OFFSET_SIGNED,
    VALUE, VALUE_SIGNED, VALUE_COMPUTED, ARGUMENTS = 0x2e
};

static bool step_about_frame(struct machine *machine, struct reader *steps, uint64_t step)
{
    int64_t unit = machine->common->data_unit;
    uint64_t number = step == FRAME || step == FRAME_REGISTER || step == FRAME_SIGNED ? read_unsigned(steps) : 0;
    switch (step) {
    case FRAME: set_frame(machine, number, (int64_t)read_unsigned(steps)); return true;
    case FRAME_SIGNED: set_frame(machine, number, read_signed(steps) * unit); return true;
    case FRAME_REGISTER: set_frame(machine, number, machine->now.rule.frame_at); return true;
    case FRAME_OFFSET: set_frame_at(machine, (int64_t)read_unsigned(steps)); return true;
    case FRAME_OFFSET_SIGNED: set_frame_at(machine, read_signed(steps) * unit); return true;
    case FRAME_COMPUTED: set_frame_computed(machine, read_computation(steps)); return true;
    default: return false;
    }
}

static bool step_forward(struct machine *machine, struct reader *steps, uint64_t step)
{
    switch (step) {
    case NOTHING: return true;
    case SET_PLACE: machine->at = read_address(steps, machine->common->form, 0); return true;
    case ADVANCE_1: advance(machine, read_bytes(steps, 1)); return true;
    case ADVANCE_2: advance(machine, read_bytes(steps, 2)); return true;
    case ADVANCE_4: advance(machine, read_bytes(steps, 4)); return true;
    case REMEMBER: keep(machine, steps); return true;
    case TAKE_BACK: take_back(machine, steps); return true;
    case ARGUMENTS: read_unsigned(steps); return true;
    default: return false;
    }
}

static void step_about_register(struct machine *machine, struct reader *steps, uint64_t step)
{
    int64_t unit = machine->common->data_unit;
    uint64_t number = read_unsigned(steps);
    switch (step) {
    case OFFSET_EXTENDED: set_kept(machine, number, (int64_t)read_unsigned(steps) * unit); return;
    case OFFSET_SIGNED: set_kept(machine, number, read_signed(steps) * unit); return;
    case RESTORE_EXTENDED: set_first(machine, number); return;
    case UNDEFINED: set_lost(machine, number, true); return;
    case SAME_VALUE: set_same(machine, number); return;
    case COMPUTED: set_kept_computed(machine, number, read_computation(steps)); return;
    case REGISTER: case VALUE: read_unsigned(steps); break;
    case VALUE_SIGNED: read_signed(steps); break;
    case VALUE_COMPUTED: read_computation(steps); break;
    default: steps->failed = true; return;
    }
    set_lost(machine, number, false);
}

static void make_step(struct machine *machine, struct reader *steps)
{
    uint64_t step = read_bytes(steps, 1), number = step & ~(uint64_t)STEP;
    if ((step & STEP) == ADVANCE)
        advance(machine, number);
    else if ((step & STEP) == OFFSET)
        set_kept(machine, number, (int64_t)read_unsigned(steps) * machine->common->data_unit);
    else if ((step & STEP) == RESTORE)
        set_first(machine, number);
    else if (!step_forward(machine, steps, step) && !step_about_frame(machine, steps, step))
        step_about_register(machine, steps, step);
}

/* Run the steps up to `address`. False if one is not understood. */
static bool run(struct machine *machine, struct reader steps, uintptr_t address)
{
    while (steps.at < steps.end && !steps.failed && machine->at <= address) {
        struct state before = machine->now;
        make_step(machine, &steps);
        if (machine->at > address)
            machine->now = before;
    }
    return !steps.failed;
}

struct frame_rule frame_rule_at(const struct frame_table *frames, uintptr_t address, struct frame_copies *copies, uintptr_t *begin)
{
    static const struct frame_rule unknown;
    struct common common;
    struct description found;
    uintptr_t description = frames->head ? find_description(frames, address) : 0;
    if (!description || !read_description(frames, description, copies, &common, &found) || address < found.begin || address >= found.end)
        return unknown;
    *begin = found.begin;
    struct machine machine = {.common = &common, .at = found.begin};
    if (!run(&machine, common.steps, UINTPTR_MAX))
        return unknown;
    machine.first = machine.now;
    machine.depth = 0;
    bool is_read = run(&machine, found.steps, address) && !machine.now.returns_elsewhere && !common.is_handler;
    return is_read ? machine.now.rule : unknown;
}
