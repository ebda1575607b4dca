#include "cpython/known_code.h"

#include <stdlib.h>

#include "core/recorder.h"
#include "cpython/ownership.h"

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
        known->kept_by->first = known->next;
    known->kept_by->let_go(known);
    free(known);
}

static void put_first(struct known_codes *codes, struct known_code *known)
{
    known->next = codes->first;
    if (codes->first)
        codes->first->previous = known;
    codes->first = known;
}

static struct known_code *new_known_code(struct known_codes *codes, PyCodeObject *code)
{
    struct known_code *known = calloc(1, codes->bytes);
    if (!known)
        return NULL;
    if (code_extra_set(code, codes->index, known)) {
        PyErr_Clear();
        free(known);
        return NULL;
    }
    known->kept_by = codes;
    known->code = code;
    put_first(codes, known);
    if (codes->meet)
        codes->meet(known);
    return known;
}

bool is_chosen_code(const struct known_codes *codes, const PyCodeObject *code, frame *here, bool own)
{
    const char *function = utf8(code->co_qualname);
    if (is_chosen(&codes->choice, utf8(module_of(here)), function, own))
        return true;
    PyObject *imported = codes->choice.count ? module_run_as_main(here) : NULL;
    bool chosen = imported && is_chosen(&codes->choice, utf8(imported), function, own);
    Py_XDECREF(imported);
    return chosen;
}

static void look_at(struct known_code *known, frame *here)
{
    const struct known_codes *codes = known->kept_by;
    known->serial = codes->choice.serial;
    known->own = is_own_code(known->code, here);
    known->chosen = is_chosen_code(codes, known->code, here, known->own);
}

void known_code_name(struct known_code *known, frame *here)
{
    if (known->texts == recorder.serial)
        return;
    PyObject *module = module_of(here);
    known->texts = recorder.serial;
    known->file = intern_file(known->code->co_filename);
    known->function = intern_text(known->code->co_qualname);
    known->module = module ? intern_text(module) : 0;
}

struct known_code *known_code_look(struct known_codes *codes, PyCodeObject *code, frame *here)
{
    struct known_code *known = code_extra(code, codes->index);
    struct raised raised = raised_keep();
    known = known ? known : new_known_code(codes, code);
    if (known)
        look_at(known, here);
    raised_restore(raised);
    return known;
}

int known_codes_begin(struct known_codes *codes)
{
    codes->interpreter = PyInterpreterState_Get();
    if (codes->index < 0)
        codes->index = code_extra_index(known_code_free);
    return codes->index < 0 ? -1 : 0;
}
