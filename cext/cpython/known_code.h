/* Code objects that are looked at as they run: which are chosen, and what they are called. What is known of one hangs on
   its extra slot and is freed with it; whoever includes this keeps more of each behind it. */
#pragma once

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "cpython/frame.h"
#include "cpython/ownership.h"

enum { CHOICES = 64, CHOICE_BYTES = 256 };

struct known_code {
    struct known_code *next, *previous;
    PyCodeObject *code; /* lives as long as this does */
    uint32_t serial;    /* of the choice */
    uint32_t chosen, own;
    uint32_t texts; /* the recording that the next are of */
    uint32_t file, function, module;
};

static struct {
    int index; /* of the extra slot; below 0: none yet */
    uint32_t serial;
    unsigned choices; /* 0: the program's own code is chosen */
    struct {
        char module[CHOICE_BYTES], function[CHOICE_BYTES];
    } choice[CHOICES];
    struct known_code *first;
    size_t bytes; /* of each, with what its keeper has behind it */
    void (*meet)(struct known_code *);
    void (*let_go)(struct known_code *);
    PyInterpreterState *interpreter;
} known_codes = {.index = -1};

/* --- the choice */

static void choose_own_code(void)
{
    known_codes.choices = 0;
    known_codes.serial++;
}

/* Functions of modules, each a pattern as file names have them. False where there are too many. */
static bool choose(const char *module, const char *function)
{
    if (known_codes.choices == CHOICES || strlen(module) >= CHOICE_BYTES || strlen(function) >= CHOICE_BYTES)
        return false;
    strcpy(known_codes.choice[known_codes.choices].module, module);
    strcpy(known_codes.choice[known_codes.choices++].function, function);
    return true;
}

static bool is_module(const char *pattern, const char *module)
{
    size_t bytes = strlen(pattern);
    return fnmatch(pattern, module, 0) == 0 || (strncmp(pattern, module, bytes) == 0 && module[bytes] == '.');
}

/* A function's comprehensions, and other code inside of it without a name, are the function's. */
static bool is_function(const char *pattern, const char *function)
{
    char outer[CHOICE_BYTES];
    const char *inside = strstr(function, ".<locals>.<");
    if (fnmatch(pattern, function, 0) == 0)
        return true;
    if (!inside || (size_t)(inside - function) >= sizeof outer)
        return false;
    memcpy(outer, function, (size_t)(inside - function));
    outer[inside - function] = 0;
    return fnmatch(pattern, outer, 0) == 0;
}

static bool is_chosen(const char *module, const char *function, bool own)
{
    for (unsigned index = 0; index < known_codes.choices; index++)
        if (is_module(known_codes.choice[index].module, module) && is_function(known_codes.choice[index].function, function))
            return true;
    return !known_codes.choices && own;
}

/* --- code objects */

/* The name of the module whose names a frame's code uses, or NULL. */
static PyObject *module_of(frame *here)
{
    PyObject *names = here->f_globals;
    PyObject *name = names && PyDict_CheckExact(names) ? PyDict_GetItemString(names, "__name__") : NULL;
    return name && PyUnicode_CheckExact(name) ? name : NULL;
}

static const char *utf8(PyObject *text)
{
    const char *plain = text ? PyUnicode_AsUTF8(text) : NULL;
    if (!plain)
        PyErr_Clear();
    return plain ? plain : "";
}

static void known_code_free(void *extra)
{
    struct known_code *known = extra;
    if (!known)
        return;
    if (known->next)
        known->next->previous = known->previous;
    if (known->previous)
        known->previous->next = known->next;
    else
        known_codes.first = known->next;
    known_codes.let_go(known);
    free(known);
}

static struct known_code *new_known_code(PyCodeObject *code)
{
    struct known_code *known = calloc(1, known_codes.bytes);
    if (!known)
        return NULL;
    if (code_extra_set(code, known_codes.index, known)) {
        PyErr_Clear();
        free(known);
        return NULL;
    }
    known->code = code;
    known->next = known_codes.first;
    if (known_codes.first)
        known_codes.first->previous = known;
    known_codes.first = known;
    known_codes.meet(known);
    return known;
}

/* What start-up files have executed is the interpreter's start. */
static bool is_of_start(frame *here)
{
    PyObject *module = module_of(here);
    return module && PyUnicode_CompareWithASCIIString(module, "site") == 0;
}

/* What namedtuple makes lies in no file, and has no built-ins to use; the program did not write it. */
static bool is_of_namedtuple(const PyCodeObject *code, const frame *here)
{
    PyObject *builtins = here->f_builtins;
    return builtins && PyDict_CheckExact(builtins) && PyDict_GET_SIZE(builtins) == 0 &&
           PyUnicode_CompareWithASCIIString(code->co_filename, "<string>") == 0;
}

static bool is_own_code(const PyCodeObject *code, frame *here)
{
    return is_own(code->co_filename) && !is_of_start(here) && !is_of_namedtuple(code, here);
}

static void look_at(struct known_code *known, frame *here)
{
    known->serial = known_codes.serial;
    known->own = is_own_code(known->code, here);
    known->chosen = is_chosen(utf8(module_of(here)), utf8(known->code->co_qualname), known->own);
}

/* Have the numbers of its names be those of this recording. */
static void known_code_name(struct known_code *known, frame *here)
{
    if (known->texts == recorder.serial)
        return;
    PyObject *module = module_of(here);
    known->texts = recorder.serial;
    known->file = intern_text(known->code->co_filename);
    known->function = intern_text(known->code->co_qualname);
    known->module = module ? intern_text(module) : 0;
}

/* An exception that is set stays as it is. */
static __attribute__((noinline)) struct known_code *first_look(PyCodeObject *code, frame *here)
{
    PyObject *type, *value, *traceback;
    struct known_code *known = code_extra(code, known_codes.index);
    PyErr_Fetch(&type, &value, &traceback);
    known = known ? known : new_known_code(code);
    if (known)
        look_at(known, here);
    PyErr_Restore(type, value, traceback);
    return known;
}

/* What is known of a code object; NULL where memory is short. */
static inline struct known_code *known_code_of(PyCodeObject *code, frame *here)
{
    struct known_code *known = code_extra(code, known_codes.index);
    return LIKELY(known && known->serial == known_codes.serial) ? known : first_look(code, here);
}

/* Each takes so many `bytes`; `meet` is told of a new one, and `let_go` of one that goes. Below 0 where there is no room. */
static int known_codes_begin(size_t bytes, void (*meet)(struct known_code *), void (*let_go)(struct known_code *))
{
    known_codes.interpreter = PyInterpreterState_Get();
    known_codes.bytes = bytes;
    known_codes.meet = meet;
    known_codes.let_go = let_go;
    if (known_codes.index < 0)
        known_codes.index = code_extra_index(known_code_free);
    return known_codes.index < 0 ? -1 : 0;
}
