#include "hooks/started_program.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/open_file.h"
#include "core/own_thread.h"
#include "core/preload.h"
#include "core/program.h"
#include "core/spare_stack.h"
#include "cpython/attributes.h"
#include "hooks/environment_copies.h"
#include "hooks/object_descriptor.h"
#include "hooks/path_objects.h"

enum { PROGRAM_WORDS = 32 };

/* The program's path, and its name and the beginning of its words, as they are given to exec; in memory of our own, for the
   thread's stack may be small. What begins in a directory is made to begin at the root: the child may have another one than we. */
struct program_words {
    PyObject *kept[PROGRAM_WORDS + 1]; /* what the texts are of */
    const char *words[PROGRAM_WORDS + 1];
    int count;
    const char *directory; /* where the child begins; NULL: here */
    bool has_our_path, is_needed;
    char path[PATH_BYTES], name[PATH_BYTES], found[PATH_BYTES];
};

static void forget_words(struct program_words *program)
{
    for (int each = 0; each < program->count; each++)
        Py_DECREF(program->kept[each]);
}

/* The text as bytes that stay until the words are forgotten; NULL for other objects. */
static const char *keep_text(struct program_words *program, PyObject *text)
{
    PyObject *bytes = text && program->count <= PROGRAM_WORDS ? encoded_path(text) : NULL;
    if (!bytes)
        return NULL;
    program->kept[program->count++] = bytes;
    return PyBytes_AS_STRING(bytes);
}

static bool is_plain_list(PyObject *list)
{
    return list && (PyList_CheckExact(list) || PyTuple_CheckExact(list));
}

static bool take_words(struct program_words *program, PyObject *list)
{
    PyObject *items = is_plain_list(list) ? items_as_now(list) : NULL;
    Py_ssize_t count = items ? PySequence_Fast_GET_SIZE(items) : 0;
    bool kept = true;
    int number = 0;
    for (; kept && number < count && number < PROGRAM_WORDS; number++) {
        program->words[number] = keep_text(program, PySequence_Fast_GET_ITEM(items, number));
        kept = program->words[number];
    }
    program->words[number] = NULL;
    Py_XDECREF(items);
    return kept && number > 0;
}

/* The first of the paths that there is, as fork_exec tries them in turn. */
static bool take_first(struct program_words *program, PyObject *paths)
{
    PyObject *items = is_plain_list(paths) ? items_as_now(paths) : NULL;
    bool found = false;
    for (Py_ssize_t each = 0; items && !found && each < PySequence_Fast_GET_SIZE(items); each++) {
        PyObject *path = PySequence_Fast_GET_ITEM(items, each);
        found = PyBytes_CheckExact(path) && absolute_path(program->directory, PyBytes_AS_STRING(path), program->path) &&
                program_is_there(program->path);
    }
    Py_XDECREF(items);
    return found;
}

static bool take_open_file(struct program_words *program, int number)
{
    char link[64];
    snprintf(link, sizeof link, OWN_PROC "/fd/%d", number);
    ssize_t bytes = readlink(link, program->path, PATH_BYTES - 1);
    program->path[bytes < 0 ? 0 : bytes] = 0;
    return bytes > 0;
}

static bool take_path(struct program_words *program, const struct slot *slot, PyObject *given)
{
    if (slot->passes == PASSES_list)
        return take_first(program, given);
    if (PyLong_CheckExact(given))
        return take_open_file(program, descriptor_of_number(given));
    const char *path = keep_text(program, given);
    if (path && slot->passes == PASSES_search && !strchr(path, '/'))
        path = program_find(path, program->found) ? program->found : NULL;
    return path && absolute_path(NULL, path, program->path);
}

static bool take_directory(struct program_words *program, PyObject *given)
{
    program->directory = given == Py_None ? NULL : keep_text(program, given);
    return given == Py_None || program->directory;
}

/* A name with a slash is where the interpreter looks for itself; one without is searched in PATH. */
static bool take_name(struct program_words *program)
{
    const char *name = program->words[0];
    if (!strchr(name, '/'))
        return true;
    program->words[0] = program->name;
    return absolute_path(program->directory, name, program->name);
}

static bool take_program(struct program_words *program, const struct slot *slot, PyObject *const *items)
{
    bool listed = slot->passes == PASSES_list;
    return (!listed || take_directory(program, items[4])) && take_path(program, slot, items[listed]) &&
           take_words(program, items[!listed]) && take_name(program);
}

static void look(void *data)
{
    struct program_words *program = data;
    program->is_needed = preload_is_needed(program->path, program->words, program->has_our_path);
}

static void look_at_shell(void *is_needed)
{
    *(bool *)is_needed = preload_is_needed("/bin/sh", (const char *const[]){"sh", NULL}, true);
}

bool program_needs_preload(const struct slot *slot, PyObject *const *items, Py_ssize_t count, PyObject *environment)
{
    bool is_needed = false;
    if (slot->passes == PASSES_shell)
        spare_call(look_at_shell, &is_needed);
    if (slot->passes == PASSES_shell || count < (slot->passes == PASSES_list ? 5 : 2))
        return is_needed;
    struct program_words *program = spare_take();
    if (!program)
        return false;
    if (take_program(program, slot, items)) {
        program->has_our_path = has_our_path(environment);
        spare_run(program, look, program);
    }
    is_needed = program->is_needed;
    forget_words(program);
    spare_release(program);
    return is_needed;
}
