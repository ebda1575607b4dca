#include "hooks/started_program.h"

#include <string.h>

#include "core/open_file.h"
#include "core/preload.h"
#include "core/program.h"
#include "cpython/attributes.h"
#include "hooks/environment_copies.h"
#include "hooks/object_texts.h"

enum { PROGRAM_WORDS = 32 };

/* The program's path and the beginning of its words, as they are given to exec. */
struct program_words {
    PyObject *kept[PROGRAM_WORDS + 1]; /* what the texts are of */
    const char *words[PROGRAM_WORDS + 1];
    int count;
    char path[PATH_BYTES];
};

static void forget_words(struct program_words *program)
{
    for (int each = 0; each < program->count; each++)
        Py_DECREF(program->kept[each]);
}

/* The text as bytes that stay until the words are forgotten; NULL for other objects. */
static const char *keep_text(struct program_words *program, PyObject *text)
{
    PyObject *bytes = text && program->count <= PROGRAM_WORDS ? encoded(text) : NULL;
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
static const char *first_executable(struct program_words *program, PyObject *paths)
{
    PyObject *items = is_plain_list(paths) ? items_as_now(paths) : NULL;
    const char *found = NULL;
    for (Py_ssize_t each = 0; items && !found && each < PySequence_Fast_GET_SIZE(items); each++) {
        PyObject *path = PySequence_Fast_GET_ITEM(items, each);
        if (PyBytes_CheckExact(path) && program_is_there(PyBytes_AS_STRING(path)))
            found = keep_text(program, path);
    }
    Py_XDECREF(items);
    return found;
}

static bool take_path(struct program_words *program, const struct slot *slot, PyObject *const *items)
{
    bool listed = slot->passes == PASSES_list;
    const char *path = listed ? first_executable(program, items[1]) : keep_text(program, items[0]);
    if (!path || strlen(path) >= sizeof program->path)
        return false;
    if (slot->passes == PASSES_search && !strchr(path, '/'))
        return program_find(path, program->path);
    strcpy(program->path, path);
    return *path == '/' || !listed || items[4] == Py_None; /* else it is looked for in another directory */
}

bool program_needs_preload(const struct slot *slot, PyObject *const *items, Py_ssize_t count, PyObject *environment)
{
    struct program_words program = {.count = 0};
    if (slot->passes == PASSES_shell || count < (slot->passes == PASSES_list ? 5 : 2))
        return false;
    bool known = take_path(&program, slot, items) && take_words(&program, items[slot->passes != PASSES_list]);
    bool needed = known && preload_is_needed(program.path, program.words, has_our_path(environment));
    forget_words(&program);
    return needed;
}
