#include "cpython/waiting_sites.h"

#include <stdio.h>
#include <string.h>

#include "core/intern.h"
#include "cpython/ownership.h"
#include "cpython/sites.h"

enum { NAME_ROOM = 1024, OUTWARD = 8 };

static struct cache written; /* sites that do not hang on code */

int waiting_sites_begin(void)
{
    return cache_begin(&written);
}

/* A letter in UTF-8; those that stand for a byte of a name that is none are that byte, as the file system has it. */
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

/* A text that never changes, without a conversion of Python's, which would allocate. Gives its length; it is cut. */
static size_t copy_text(PyObject *text, char room[NAME_ROOM])
{
    size_t bytes = 0;
    Py_ssize_t length = PyUnicode_Check(text) ? PyUnicode_GET_LENGTH(text) : 0;
    for (Py_ssize_t index = 0; index < length && bytes < NAME_ROOM - 5; index++)
        bytes += encode(PyUnicode_READ_CHAR(text, index), room + bytes);
    room[bytes] = 0;
    return bytes;
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
    site.file = string_intern(name, copy_text(code->co_filename, name));
    site.own = *own_code = is_own_name(name);
    site.function = string_intern(name, copy_text(code->co_qualname, name));
    uint64_t key = hash_bytes((const char *)&site, sizeof site) | 1;
    uint32_t number = cache_find(&written, key);
    if (!number && (number = site_add(&site)))
        cache_keep(&written, key, number);
    own_end(thread, begin);
    return number;
}

static uint32_t site_of_waiting(frame *frame, int index, uint32_t *own_code)
{
    PyCodeObject *code = frame_code(frame);
    const struct code_sites *sites = extras_lie_as_known ? code_extra_direct(code, index) : NULL;
    uint32_t instruction = (uint32_t)frame_instruction(frame);
    if (!is_in_sight(sites, instruction))
        return write_site(frame, code, own_code);
    *own_code = sites->own;
    return sites->places[instruction].site;
}

uint32_t stack_of_waiting(frame *frame, bool whole)
{
    return recorder.stack_kept ? stack_by(site_of_waiting, frame, known_sites.index, whole) : 0;
}

static frame *own_frame(frame *innermost)
{
    char name[NAME_ROOM];
    frame *each = innermost;
    for (unsigned depth = 0; each && depth < OUTWARD; depth++, each = frame_outer(each)) {
        copy_text(frame_code(each)->co_filename, name);
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
    copy_text(code->co_filename, file);
    copy_text(code->co_qualname, function);
    int length = snprintf(text, room, "%.800s:%d %.200s", file, line, function);
    return length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}
