#define _GNU_SOURCE
#include "sampler/codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/generated_names.h"
#include "core/installed_names.h"
#include "core/path_name.h"
#include "sampler/process.h"

enum {
    UNIT_BYTES = 2, /* of an instruction */
    CODES_AT_MOST = 1 << 16,
    SITES_AT_MOST = 1 << 20,
    LINES_BYTES_AT_MOST = 1 << 20,
    STATE_KIND = 2, STATE_KIND_BITS = 7, STATE_COMPACT = 1 << 5, STATE_ASCII = 1 << 6, /* of a text */
};

struct code {
    uint64_t file, function, lines; /* addresses: they tell another code object at the same address */
    uint32_t first_line, units;
    uint32_t room; /* of a frame, for variables and values on its stack */
    bool is_of_generator, is_shim;
    uint32_t file_number, function_number, own;
    uint32_t table_bytes;
    unsigned char *table; /* of lines */
};

/* --- texts */

static size_t put_utf8(char *into, uint32_t character)
{
    if (character < 0x80) {
        into[0] = (char)character;
        return 1;
    }
    size_t more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    for (size_t index = more; index > 0; index--, character >>= 6)
        into[index] = (char)(0x80 | (character & 0x3f));
    into[0] = (char)((0xf0 << (3 - more)) | character);
    return more + 1;
}

/* A byte that was not UTF-8 became one of these when it was decoded (PEP 383), and is that byte again. */
static bool is_escaped_byte(uint32_t character)
{
    return character >= 0xdc80 && character <= 0xdcff;
}

static size_t put_character(char *into, uint32_t character)
{
    if (!is_escaped_byte(character))
        return put_utf8(into, character);
    into[0] = (char)(character & 0xff);
    return 1;
}

static uint32_t character_at(const void *characters, unsigned width, size_t index)
{
    return width == 1   ? ((const uint8_t *)characters)[index]
           : width == 2 ? ((const uint16_t *)characters)[index]
                        : ((const uint32_t *)characters)[index];
}

static size_t read_text(const struct sampled_process *process, uint64_t address, char into[TEXT_BYTES], bool *is_cut)
{
    const struct interpreter_layout *layout = &process->layout;
    char head[64];
    uint32_t characters[TEXT_CHARACTERS];
    size_t bytes = 0;
    if (!remote_read(process->reached, address, head, layout->text_ascii < sizeof head ? layout->text_ascii : sizeof head))
        return 0;
    if (word_at(head, sizeof head, layout->object_type) != layout->text_type)
        return 0;
    uint32_t state = half_word_at(head, sizeof head, layout->text_state);
    uint64_t length = word_at(head, sizeof head, layout->text_length);
    unsigned width = state >> STATE_KIND & STATE_KIND_BITS;
    if (!(state & STATE_COMPACT) || (width != 1 && width != 2 && width != 4) || !length)
        return 0;
    *is_cut = length > TEXT_CHARACTERS;
    length = *is_cut ? TEXT_CHARACTERS : length;
    uint64_t begin = address + (state & STATE_ASCII ? layout->text_ascii : layout->text_other);
    if (!remote_read(process->reached, begin, characters, length * width))
        return 0;
    for (size_t index = 0; index < length; index++)
        bytes += put_character(into + bytes, character_at(characters, width, index));
    return bytes;
}

size_t codes_text(const struct sampled_process *process, uint64_t address, char into[TEXT_BYTES])
{
    bool is_cut;
    return read_text(process, address, into, &is_cut);
}

static uint32_t number_of_text(struct sampled_process *process, uint64_t address)
{
    char text[TEXT_BYTES];
    size_t bytes = codes_text(process, address, text);
    return tables_string(&process->tables, bytes ? text : "?", bytes ? bytes : 1);
}

/* --- whose code it is, by the rule of cpython/ownership.c */

static bool is_below(const char *file, size_t bytes, const char *directories)
{
    while (directories && *directories) {
        const char *end = strchr(directories, '\n');
        size_t length = end ? (size_t)(end - directories) : strlen(directories);
        if (length && length <= bytes && memcmp(file, directories, length) == 0)
            return true;
        directories = end ? end + 1 : NULL;
    }
    return false;
}

/* As the process names it itself. A name that was cut stays as it is: its end decides what is left of the rest. */
static size_t text_of_file(const struct sampled_process *process, uint64_t address, char into[TEXT_BYTES + 1])
{
    char root[32];
    bool is_cut = false;
    size_t bytes = read_text(process, address, into, &is_cut);
    into[bytes] = 0;
    if (is_cut || strlen(into) != bytes)
        return bytes;
    snprintf(root, sizeof root, "/proc/%d/root", (int)process->reached);
    path_name(into, root);
    return strlen(into);
}

static void name_file(struct sampled_process *process, struct code *code)
{
    static const char shim[] = "<shim>";
    char text[TEXT_BYTES + 1];
    size_t bytes = text_of_file(process, code->file, text);
    code->is_shim = bytes == sizeof shim - 1 && memcmp(text, shim, bytes) == 0;
    bool is_librarys = is_generated_name(text, bytes) || is_installed_name(text, bytes);
    code->own = bytes && !is_librarys && !is_below(text, bytes, process->libraries);
    code->file_number = tables_string(&process->tables, bytes ? text : "?", bytes ? bytes : 1);
}

/* --- lines (CPython's Objects/locations.md) */

static void read_lines(const struct sampled_process *process, struct code *code)
{
    const struct interpreter_layout *layout = &process->layout;
    char head[64];
    free(code->table);
    code->table = NULL;
    code->table_bytes = 0;
    if (!remote_read(process->reached, code->lines, head, layout->bytes_value < sizeof head ? layout->bytes_value : sizeof head))
        return;
    uint64_t bytes = word_at(head, sizeof head, layout->bytes_length);
    unsigned char *table = bytes && bytes <= LINES_BYTES_AT_MOST ? malloc(bytes) : NULL;
    if (table && remote_read(process->reached, code->lines + layout->bytes_value, table, bytes)) {
        code->table = table;
        code->table_bytes = (uint32_t)bytes;
    } else {
        free(table);
    }
}

static int32_t signed_number(const unsigned char *table, uint32_t bytes, uint32_t at)
{
    uint32_t value = 0;
    for (unsigned shift = 0; at < bytes && shift < 30; at++, shift += 6) {
        value |= (uint32_t)(table[at] & 63) << shift;
        if (!(table[at] & 64))
            break;
    }
    return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

/* An entry begins with a byte with its highest bit set: a form, and the number of instructions. */
static uint32_t line_of(const struct code *code, uint32_t instruction)
{
    enum { WITH_COLUMNS = 10, LONG_FORM_FIRST = 13, NO_LINE = 15 };
    uint32_t unit = 0, at = 0;
    int64_t line = code->first_line;
    while (at < code->table_bytes) {
        unsigned form = code->table[at] >> 3 & 15;
        unit += (code->table[at] & 7u) + 1;
        at++;
        if (form >= LONG_FORM_FIRST && form < NO_LINE)
            line += signed_number(code->table, code->table_bytes, at);
        else if (form >= WITH_COLUMNS && form < LONG_FORM_FIRST)
            line += form - WITH_COLUMNS;
        if (instruction < unit)
            return form == NO_LINE || line < 0 ? 0 : (uint32_t)line;
        while (at < code->table_bytes && !(code->table[at] & 0x80))
            at++;
    }
    return code->first_line;
}

/* --- code objects */

static bool is_same(const struct code *code, const struct code *now)
{
    return code->file == now->file && code->function == now->function && code->lines == now->lines &&
           code->first_line == now->first_line && code->units == now->units && code->room == now->room &&
           code->is_of_generator == now->is_of_generator;
}

static void forget_all(struct codes *codes)
{
    for (uint32_t index = 0; index < codes->count; index++)
        free(codes->known[index].table);
    codes->count = 0;
    numbers_clear(&codes->by_address);
    numbers_clear(&codes->sites);
}

static struct code *add_code(struct codes *codes, uint64_t address)
{
    if (codes->count == CODES_AT_MOST)
        forget_all(codes);
    if (codes->count == codes->room) {
        uint32_t room = codes->room ? 2 * codes->room : 64;
        struct code *larger = realloc(codes->known, room * sizeof *larger);
        if (!larger)
            return NULL;
        codes->known = larger;
        codes->room = room;
    }
    if (!numbers_keep(&codes->by_address, address, codes->count + 1))
        return NULL;
    struct code *code = &codes->known[codes->count++];
    memset(code, 0, sizeof *code);
    return code;
}

/* The code object at the address; if another one was cached there, it is read again. NULL if there is none. */
static struct code *find_code(struct sampled_process *process, uint64_t address, const struct code *now)
{
    uint32_t number = numbers_find(&process->codes.by_address, address);
    struct code *code = number ? &process->codes.known[number - 1] : NULL;
    if (code && is_same(code, now))
        return code;
    if (code)
        numbers_clear(&process->codes.sites);
    else
        code = add_code(&process->codes, address);
    if (!code)
        return NULL;
    free(code->table);
    *code = *now;
    name_file(process, code);
    code->function_number = number_of_text(process, code->function);
    read_lines(process, code);
    return code;
}

static uint32_t new_site(struct sampled_process *process, const struct code *code, int64_t instruction)
{
    struct site site = {
        .file = code->file_number,
        .function = code->function_number,
        .line = instruction < 0 ? code->first_line : line_of(code, (uint32_t)instruction),
        .first_line = code->first_line,
        .own = code->own,
    };
    return tables_site(&process->tables, &site);
}

/* What the head of a code object tells; false if it is of something else. */
static bool read_head(const struct interpreter_layout *layout, const void *head, struct code *into)
{
    if (word_at(head, CODE_BYTES_AT_MOST, layout->object_type) != layout->code_type)
        return false;
    uint32_t variables = half_word_at(head, CODE_BYTES_AT_MOST, layout->code_variables);
    *into = (struct code){
        .file = word_at(head, CODE_BYTES_AT_MOST, layout->code_file),
        .function = word_at(head, CODE_BYTES_AT_MOST, layout->code_function),
        .lines = word_at(head, CODE_BYTES_AT_MOST, layout->code_lines),
        .first_line = half_word_at(head, CODE_BYTES_AT_MOST, layout->code_first_line),
        .units = (uint32_t)word_at(head, CODE_BYTES_AT_MOST, layout->code_units),
        .is_of_generator = half_word_at(head, CODE_BYTES_AT_MOST, layout->code_flags) & layout->code_of_generator,
        .room = variables + half_word_at(head, CODE_BYTES_AT_MOST, layout->code_stack),
    };
    return true;
}

/* What the interpreter makes for itself: it has no lines, and its own name for that of its file. */
static bool is_of_interpreter(const struct code *code)
{
    bool has_no_line = line_of(code, 0) == 0 && line_of(code, code->units - 1) == 0;
    return code->is_shim || (code->file_number == code->function_number && has_no_line);
}

enum { BEFORE_THE_FIRST = -1, NOT_IN_IT = -2 };

/* Which instruction of the code object at the address is at `place`. */
static int64_t instruction_at(const struct interpreter_layout *layout, const struct code *code, uint64_t address, uint64_t place)
{
    int64_t bytes = (int64_t)(place - (address + layout->code_instructions));
    int64_t instruction = bytes < 0 ? BEFORE_THE_FIRST : bytes / UNIT_BYTES;
    bool is_in_it = bytes >= -UNIT_BYTES && bytes % UNIT_BYTES == 0 && instruction < code->units;
    return is_in_it ? instruction : NOT_IN_IT;
}

uint32_t codes_site(struct sampled_process *process, uint64_t address, const void *head, uint64_t place)
{
    struct codes *codes = &process->codes;
    struct code now, *code;
    if (!read_head(&process->layout, head, &now))
        return 0;
    if (!now.file)
        return NO_SITE;
    int64_t instruction = instruction_at(&process->layout, &now, address, place);
    if (instruction == NOT_IN_IT || !(code = find_code(process, address, &now)))
        return 0;
    if (is_of_interpreter(code))
        return NO_SITE;
    uint64_t key = key_of((uint64_t)(code - codes->known), (uint64_t)(instruction + 1));
    uint32_t site = numbers_find(&codes->sites, key);
    if (site)
        return site;
    if (codes->sites.used >= SITES_AT_MOST)
        numbers_clear(&codes->sites);
    site = new_site(process, code, instruction);
    if (site)
        numbers_keep(&codes->sites, key, site);
    return site;
}

/* The code object at the address, as it was read last; NULL if it never was. */
static const struct code *known_code(const struct codes *codes, uint64_t address)
{
    uint32_t number = numbers_find(&codes->by_address, address);
    return number ? &codes->known[number - 1] : NULL;
}

/* The same, read now; NULL if there is none. */
static const struct code *read_code(struct sampled_process *process, uint64_t address)
{
    char head[CODE_BYTES_AT_MOST];
    size_t bytes = process->layout.code_bytes;
    struct code now;
    bool is_read = bytes <= sizeof head && remote_read(process->reached, address, head, bytes);
    return is_read && read_head(&process->layout, head, &now) ? find_code(process, address, &now) : NULL;
}

bool codes_has(struct sampled_process *process, uint64_t address, uint64_t place)
{
    enum { BEGINS_A_GENERATOR = 4 }; /* instructions: after them its frame is elsewhere, and its memory stays as it was */
    const struct code *code = known_code(&process->codes, address);
    int64_t instruction = code ? instruction_at(&process->layout, code, address, place) : NOT_IN_IT;
    bool is_left = code && code->is_of_generator && instruction != NOT_IN_IT && instruction < BEGINS_A_GENERATOR;
    if (instruction == NOT_IN_IT || (code->is_of_generator && !is_left)) { /* another one may have the address by now */
        code = read_code(process, address);
        instruction = code ? instruction_at(&process->layout, code, address, place) : NOT_IN_IT;
    }
    return instruction != NOT_IN_IT && !code->is_of_generator;
}

bool codes_has_generator(struct sampled_process *process, uint64_t address, uint64_t place)
{
    const struct code *code = known_code(&process->codes, address);
    if (!address)
        return false;
    if (!code || !code->is_of_generator || instruction_at(&process->layout, code, address, place) == NOT_IN_IT)
        code = read_code(process, address);
    return code && code->is_of_generator && instruction_at(&process->layout, code, address, place) != NOT_IN_IT;
}

bool codes_again(struct sampled_process *process, uint64_t address, const void *head)
{
    const struct code *code = known_code(&process->codes, address);
    struct code before = code ? *code : (struct code){0}, now;
    code = !head ? read_code(process, address) : read_head(&process->layout, head, &now) ? find_code(process, address, &now) : NULL;
    return code && !is_same(code, &before);
}

uint32_t codes_room(const struct codes *codes, uint64_t address)
{
    const struct code *code = known_code(codes, address);
    return code ? code->room : 0;
}

uint32_t codes_function(const struct codes *codes, uint64_t address)
{
    const struct code *code = known_code(codes, address);
    return code ? code->function_number : 0;
}

void codes_forget(struct codes *codes)
{
    forget_all(codes);
    free(codes->known);
    memset(codes, 0, sizeof *codes);
}
