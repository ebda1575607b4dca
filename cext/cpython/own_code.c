#include "cpython/own_code.h"

#include <string.h>

#include "cpython/attributes.h"
#include "cpython/ownership.h"

PyObject *module_of(frame *here)
{
    PyObject *names = frame_globals(here);
    PyObject *name = names && PyDict_CheckExact(names) ? PyDict_GetItemString(names, "__name__") : NULL;
    return name && PyUnicode_CheckExact(name) ? name : NULL;
}

static bool is_text(PyObject *text, const char *plain)
{
    return PyUnicode_CompareWithASCIIString(text, plain) == 0;
}

/* multiprocessing runs it again in its children, under a name of its own. */
PyObject *module_run_as_main(frame *here)
{
    PyObject *name = module_of(here);
    if (!name || !(is_text(name, "__main__") || is_text(name, "__mp_main__")))
        return NULL;
    PyObject *specification = entry_named(frame_globals(here), "__spec__");
    PyObject *way = specification && specification != Py_None ? Py_BuildValue("(s)", "name") : NULL;
    PyObject *found = way ? attribute_at(specification, way) : NULL;
    if (found && !PyUnicode_Check(found))
        Py_CLEAR(found);
    PyErr_Clear();
    Py_XDECREF(way);
    Py_XDECREF(specification);
    return found;
}

/* Code that start-up files execute belongs to the interpreter's start. */
static bool is_of_start(frame *here)
{
    PyObject *module = module_of(here);
    return module && is_text(module, "site");
}

/* Code made by namedtuple has no file and no built-ins; the program did not write it. */
static bool is_of_namedtuple(const PyCodeObject *code, frame *here)
{
    PyObject *builtins = frame_builtins(here);
    return builtins && PyDict_CheckExact(builtins) && PyDict_GET_SIZE(builtins) == 0 && is_text(code->co_filename, "<string>");
}

/* A person typed this code, at a prompt, in a cell or for timeit, whichever module's globals it runs with. */
static bool is_written(const char *name)
{
    static const char *const begins[] = {"<stdin>", "<console>", "<timeit-src>", "<python-input-", "<ipython-input-"};
    for (size_t each = 0; each < sizeof begins / sizeof *begins; each++)
        if (strncmp(name, begins[each], strlen(begins[each])) == 0)
            return true;
    return false;
}

static bool ends_with(const char *text, size_t bytes, const char *end)
{
    size_t length = strlen(end);
    return bytes >= length && memcmp(text + bytes - length, end, length) == 0;
}

static bool begins_helpers(PyObject *module, PyObject *function)
{
    static const char *const modules[] = {".resource_tracker", ".forkserver", ".spawn"};
    Py_ssize_t bytes;
    const char *name = bytes_of_text(module, &bytes);
    if (!name || !(is_text(function, "main") || is_text(function, "spawn_main")))
        return false;
    for (size_t each = 0; each < sizeof modules / sizeof *modules; each++)
        if (ends_with(name, (size_t)bytes, modules[each]))
            return true;
    return false;
}

/* The command with which multiprocessing, and packages modelled on it, start a process: `python -c "from
   multiprocessing.resource_tracker import main;main(5)"`. Since 3.14 it also uses `sys.argv`, but no other names. */
static bool is_launcher(const PyCodeObject *code)
{
    enum { NAMES_AT_MOST = 4 };
    PyObject *names = code->co_names;
    Py_ssize_t count = PyTuple_GET_SIZE(names);
    if (count > NAMES_AT_MOST || !is_text(code->co_filename, "<string>") || !is_text(code->co_name, "<module>"))
        return false;
    for (Py_ssize_t each = 0; each + 1 < count; each++)
        if (begins_helpers(PyTuple_GET_ITEM(names, each), PyTuple_GET_ITEM(names, each + 1)))
            return true;
    return false;
}

static bool has_text(PyObject *texts, const char *plain)
{
    for (Py_ssize_t each = 0; each < PyTuple_GET_SIZE(texts); each++)
        if (PyUnicode_Check(PyTuple_GET_ITEM(texts, each)) && is_text(PyTuple_GET_ITEM(texts, each), plain))
            return true;
    return false;
}

static bool is_one_of(PyObject *text, const char *const *words)
{
    for (; *words; words++)
        if (is_text(text, *words))
            return true;
    return false;
}

/* Are its only texts those that an installer writes: an ending of Windows, and `__main__`? And does it import one name
   from one module? */
static bool has_what_is_generated(PyObject *consts)
{
    static const char *const endings[] = {".exe", "(-script\\.pyw|\\.exe)?$", "(-script\\.pyw?|\\.exe)?$", "-script.pyw", NULL};
    static const char *const others[] = {"__main__", "", NULL};
    int found = 0, imported = 0;
    for (Py_ssize_t each = 0; each < PyTuple_GET_SIZE(consts); each++) {
        PyObject *one = PyTuple_GET_ITEM(consts, each);
        if (PyCode_Check(one) || (PyTuple_Check(one) && PyTuple_GET_SIZE(one) != 1))
            return false;
        imported += PyTuple_Check(one);
        if (PyUnicode_Check(one) && !is_one_of(one, others)) {
            if (!is_one_of(one, endings))
                return false;
            found++;
        }
    }
    return found && imported == 1;
}

/* A console script, which an installer generates for a package: it takes an ending of Windows from `sys.argv[0]`, and
   calls the function that it imports. */
static bool is_console_script(const PyCodeObject *code)
{
    enum { NAMES_AT_MOST = 10 };
    PyObject *names = code->co_names;
    if (PyTuple_GET_SIZE(names) > NAMES_AT_MOST || !is_text(code->co_name, "<module>"))
        return false;
    bool ends = has_text(names, "argv") && has_text(names, "exit") && has_text(names, "__name__");
    return ends && has_what_is_generated(code->co_consts);
}

/* The file of the module that was imported under the name in these globals. `__main__` is left out: a program's main
   module need not have a file, and the module imported under that name may be the tool that runs it. */
static PyObject *file_of_named(PyObject *names)
{
    PyObject *name = entry_named(names, "__name__"), *file = NULL;
    Py_ssize_t bytes;
    const char *module = name ? bytes_of_text(name, &bytes) : NULL;
    if (module && strcmp(module, "__main__") != 0)
        file = entry_of_module(module, "__file__");
    Py_XDECREF(name);
    return file;
}

/* The file of the module with these globals; a new reference, or NULL. */
static PyObject *file_of_module(PyObject *names)
{
    if (!names || !PyDict_CheckExact(names))
        return NULL;
    PyObject *file = entry_named(names, "__file__");
    return file ? file : file_of_named(names);
}

/* hypothesis compiles wrappers in modules without a file. Only their names distinguish these from the program's. */
static bool is_of_hypothesis(frame *here)
{
    static const char begin[] = "hypothesis_temporary_module_";
    PyObject *module = module_of(here);
    Py_ssize_t bytes;
    const char *name = module ? bytes_of_text(module, &bytes) : NULL;
    return name && strncmp(name, begin, sizeof begin - 1) == 0;
}

/* Code that a library compiles from strings belongs to it: methods of its dataclasses, wrappers of its functions. */
static bool is_made_by_library(const PyCodeObject *code, frame *here)
{
    Py_ssize_t bytes;
    const char *name = bytes_of_text(code->co_filename, &bytes);
    if (!name || *name != '<' || is_written(name))
        return false;
    if (is_of_hypothesis(here))
        return true;
    PyObject *file = file_of_module(frame_globals(here));
    bool is_librarys = file && PyUnicode_Check(file) && !is_own(file);
    Py_XDECREF(file);
    return is_librarys;
}

bool is_own_code(const PyCodeObject *code, frame *here)
{
    return is_own(code->co_filename) && !is_of_start(here) && !is_of_namedtuple(code, here) &&
           !is_made_by_library(code, here) && !is_launcher(code) && !is_console_script(code);
}
