#include "cpython/waiting_sites.h"

#include <stdio.h>
#include <string.h>

#include "core/intern.h"
#include "core/path_name.h"
#include "cpython/ownership.h"
#include "cpython/sites.h"

enum { NAME_ROOM = 1024, OUTWARD = 8, LINES_HASHED = 128 };

static struct cache written; /* sites that do not hang on code, by what they are */
static struct cache quick;   /* the same by address, each with whether it is own code */
static uint32_t begun;       /* the recording that both are of */

PyThreadState *own_state(void)
{
    bool looks = recorder.stack_kept && !interpreter_ends();
    PyThreadState *state = looks ? PyGILState_GetThisThreadState() : NULL;
    return state && state->interp == known_sites.interpreter ? state : NULL;
}

frame *own_innermost_frame(void)
{
    PyThreadState *state = own_state();
    return state ? frame_innermost(state) : NULL;
}

int waiting_sites_begin(void)
{
    if (begun == recorder.serial)
        return 0;
    int failed = cache_begin(&written);
    failed = failed ? failed : cache_begin(&quick);
    begun = failed ? 0 : recorder.serial;
    return failed;
}

void waiting_sites_keep_many(void)
{
    cache_keep_many(&written);
    cache_keep_many(&quick);
    stacks_keep_many();
}

/* A character in UTF-8; surrogate escapes become the byte that they stand for, as in the file system. */
static size_t encode(Py_UCS4 letter, char *to)
{
    if (letter < 0x80 || (letter >= 0xdc80 && letter <= 0xdcff)) {
        to[0] = (char)letter;
        return 1;
    }
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    size_t more = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
    for (size_t place = more; place > 0; place--, letter >>= 6)
        to[place] = (char)(0x80 | (letter & 0x3f));
    to[0] = (char)(first[more] | letter);
    return more + 1;
}

/* A text that never changes, without a conversion of Python's, which would allocate. Returns its length; it is cut. */
static size_t copy_text(PyObject *text, char room[NAME_ROOM])
{
    size_t bytes = 0;
    Py_ssize_t length = PyUnicode_Check(text) ? PyUnicode_GET_LENGTH(text) : 0;
    for (Py_ssize_t index = 0; index < length && bytes < NAME_ROOM - 5; index++)
        bytes += encode(PyUnicode_READ_CHAR(text, index), room + bytes);
    room[bytes] = 0;
    return bytes;
}

static size_t copy_file(const PyCodeObject *code, char room[NAME_ROOM])
{
    copy_text(code->co_filename, room);
    path_name(room, "");
    return strlen(room);
}

/* Own cost. */
static uint32_t write_site(frame *frame, PyCodeObject *code, uint32_t *own_code)
{
    char name[NAME_ROOM];
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    int offset = frame_instruction(frame) * (int)sizeof(_Py_CODEUNIT), line = PyCode_Addr2Line(code, offset);
    struct site site = {.instruction = (uint32_t)offset, .first_line = (uint32_t)code->co_firstlineno};
    site.line = line > 0 ? (uint32_t)line : 0;
    site.file = string_intern(name, copy_file(code, name));
    site.own = *own_code = is_own_name(name);
    site.function = string_intern(name, copy_text(code->co_qualname, name));
    uint64_t key = hash_bytes((const char *)&site, sizeof site) | 1;
    uint32_t number = cache_find(&written, key);
    if (!number && (number = site_add(&site)))
        cache_keep(&written, key, number);
    own_end(thread, begin);
    return number;
}

/* A freed code object's address may be reused, and so may those of its parts: the new one's lines are others, or their table has
   another length. */
static uint64_t hash_parts(const PyCodeObject *code)
{
    const PyObject *lines = code->co_linetable;
    size_t bytes = (size_t)Py_SIZE(lines), first = bytes < LINES_HASHED ? bytes : LINES_HASHED;
    uint64_t hash = hash_mix(hash_word((uintptr_t)code->co_qualname), (uintptr_t)code->co_filename);
    hash = hash_mix(hash, (uint64_t)code->co_firstlineno << 32 | (uint32_t)bytes);
    return hash_mix(hash, hash_bytes(PyBytes_AS_STRING(lines), first));
}

static uint64_t key_of_place(frame *frame, const PyCodeObject *code)
{
    uint32_t version = code_version(code);
    uint64_t key = hash_mix(hash_word((uintptr_t)code), LIKELY(version) ? version : hash_parts(code));
    return hash_mix(key, (uint64_t)recorder.serial << 32 | (uint32_t)frame_instruction(frame)) | 1;
}

static uint32_t site_without_lock(frame *frame, int index, uint32_t *own_code)
{
    (void)index;
    PyCodeObject *code = frame_code(frame);
    uint64_t key = key_of_place(frame, code);
    uint32_t known = cache_find(&quick, key);
    if (known) {
        *own_code = known & 1;
        return known >> 1;
    }
    uint32_t site = write_site(frame, code, own_code);
    if (site)
        cache_keep(&quick, key, site << 1 | (*own_code != 0));
    return site;
}

static uint32_t site_of_waiting(frame *frame, int index, uint32_t *own_code)
{
    PyCodeObject *code = frame_code(frame);
    const struct code_sites *sites = extras_lie_as_known ? code_extra_direct(code, index) : NULL;
    uint32_t instruction = (uint32_t)frame_instruction(frame);
    if (!is_in_sight(sites, instruction))
        return site_without_lock(frame, index, own_code);
    *own_code = sites->own;
    return site_at(&sites->places[instruction]);
}

uint32_t stack_of_waiting(frame *frame, bool whole)
{
    return recorder.stack_kept ? stack_by(site_of_waiting, frame, known_sites.index, whole) : 0;
}

uint32_t stack_without_lock(frame *frame)
{
    return recorder.stack_kept ? stack_by(site_without_lock, frame, known_sites.index, false) : 0;
}

uint32_t stack_again(frame *frame, bool has_lock, struct cached *last)
{
    if (!recorder.stack_kept)
        return 0;
    uint64_t key = key_of_place(frame, frame_code(frame));
    uint32_t own_code = 0, stack = cached_find(last, key);
    if (LIKELY(stack))
        return stack;
    site_finder *find = has_lock ? site_of_waiting : site_without_lock;
    uint32_t site = find(frame, known_sites.index, &own_code);
    stack = stack_by(find, frame, known_sites.index, false);
    if (site && own_code && stack) /* only then does it not depend on who called */
        cached_keep(last, key, stack);
    return stack;
}

static frame *own_frame(frame *innermost)
{
    char name[NAME_ROOM];
    frame *each = innermost;
    for (unsigned depth = 0; each && depth < OUTWARD; depth++, each = frame_outer(each)) {
        copy_file(frame_code(each), name);
        if (is_own_name(name))
            return each;
    }
    return innermost;
}

size_t describe_waiting(frame *frame, char *text, size_t room)
{
    char file[NAME_ROOM], function[NAME_ROOM];
    frame = own_frame(frame);
    PyCodeObject *code = frame_code(frame);
    int line = PyCode_Addr2Line(code, frame_instruction(frame) * (int)sizeof(_Py_CODEUNIT));
    copy_file(code, file);
    copy_text(code->co_qualname, function);
    int length = snprintf(text, room, "%.800s:%d %.200s", file, line, function);
    return length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}
