/* libinterpose_boot.so, preloaded into an interpreter that reads no start-up file of ours: it begins the recording as one
   would, before the program's first line. Into a program in another language, where such are recorded, it loads
   libinterpose_program.so, which stays out of all others.

   It is linked against nothing of Python's: an interpreter may be one file, or a library. PySys_AddAuditHook may be
   called before Py_Initialize; just before the program is run the hook hears one of the events "cpython.run_…". A hook
   cannot be taken out again; afterwards it returns at once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEVELS = 3 /* of the path: the library, cext, interpose */, FILE_INPUT = 257 };

/* The program's own directory is left out, as it is not there when start-up files are read; ours comes last. */
static const char code[] =
    "import sys\n"
    "found = sys.path\n"
    "try:\n"
    "    sys.path = [*found[0 if sys.flags.safe_path else 1:], place]\n"
    "    import interpose.boot\n"
    "    interpose.boot.boot()\n"
    "except Exception:\n"
    "    pass\n"
    "finally:\n"
    "    sys.path = found\n";

static char place[PATH_MAX];
static bool booted;

typedef int (*audit_hook)(const char *event, void *arguments, void *data);

static void *run_code(void *names)
{
    void *(*decode)(const char *) = dlsym(RTLD_DEFAULT, "PyUnicode_DecodeFSDefault");
    int (*put)(void *, const char *, void *) = dlsym(RTLD_DEFAULT, "PyDict_SetItemString");
    void *(*run)(const char *, int, void *, void *, void *) = dlsym(RTLD_DEFAULT, "PyRun_StringFlags");
    void (*release)(void *) = dlsym(RTLD_DEFAULT, "Py_DecRef");
    void *text = decode && put && run && release ? decode(place) : NULL;
    void *result = text && put(names, "place", text) == 0 ? run(code, FILE_INPUT, names, names, NULL) : NULL;
    if (text)
        release(text);
    return result;
}

static void boot(void)
{
    void *(*new_names)(void) = dlsym(RTLD_DEFAULT, "PyDict_New");
    void (*release)(void *) = dlsym(RTLD_DEFAULT, "Py_DecRef");
    void (*clear)(void) = dlsym(RTLD_DEFAULT, "PyErr_Clear");
    if (!new_names || !release || !clear)
        return;
    void *names = new_names(), *result = names ? run_code(names) : NULL;
    if (!result)
        clear();
    if (result)
        release(result);
    if (names)
        release(names);
}

/* --- the hook's entry in the interpreter's list

   It is allocated before the interpreter has chosen its allocators, and freed with those: with PYTHONMALLOC=debug or
   -X dev that is an abort. So it lies in memory of ours, and is not freed. */

struct allocator { /* PyMemAllocatorEx */
    void *context;
    void *(*take)(void *context, size_t bytes);
    void *(*take_zeroed)(void *context, size_t count, size_t bytes);
    void *(*change)(void *context, void *memory, size_t bytes);
    void (*release)(void *context, void *memory);
};

enum { RAW = 0 /* PYMEM_DOMAIN_RAW */ };

static struct allocator usual;
static void *entry[16];
static bool entry_taken;

static void *take_entry(void *context, size_t bytes)
{
    (void)context;
    if (entry_taken || bytes > sizeof entry)
        return NULL;
    entry_taken = true;
    return entry;
}

static void release_all_but_entry(void *context, void *memory)
{
    (void)context;
    if (memory != entry)
        usual.release(usual.context, memory);
}

/* Put another function in the place of one of the raw allocator's; false if it cannot be had. */
static bool change_allocator(void *(*take)(void *, size_t), void (*release)(void *, void *))
{
    void (*get)(int, struct allocator *) = dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    void (*set)(int, struct allocator *) = dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    if (!get || !set)
        return false;
    get(RAW, &usual);
    struct allocator changed = usual;
    if (take)
        changed.take = take;
    if (release)
        changed.release = release;
    set(RAW, &changed);
    return true;
}

static void restore_allocator(void)
{
    void (*set)(int, struct allocator *) = dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    set(RAW, &usual);
}

static __attribute__((noinline)) void hear_seldom(const char *event)
{
    if (!booted && strncmp(event, "cpython.run_", 12) == 0) {
        booted = true;
        boot();
    } else if (strcmp(event, "cpython._PySys_ClearAuditHooks") == 0) {
        change_allocator(NULL, release_all_but_entry);
    }
}

static int hear(const char *event, void *arguments, void *data)
{
    (void)arguments;
    (void)data;
    if (__builtin_expect(event[0] == 'c' && event[1] == 'p', 0))
        hear_seldom(event);
    return 0;
}

static void add_hook(int (*add)(audit_hook, void *))
{
    if (!change_allocator(take_entry, NULL))
        return;
    add(hear, NULL);
    restore_allocator();
}

/* LD_PRELOAD as it was before our library was appended to it, or no such variable. */
static void restore_preload(char **environment, const char *path)
{
    static const char name[] = "LD_PRELOAD=";
    for (; *environment; environment++) {
        size_t bytes = strlen(*environment), own = strlen(path);
        if (strncmp(*environment, name, sizeof name - 1) != 0 || bytes < sizeof name - 1 + own)
            continue;
        char *end = *environment + bytes - own;
        if (strcmp(end, path) != 0)
            continue;
        if (end == *environment + sizeof name - 1)
            for (char **next = environment; *next; next++)
                *next = next[1];
        else if (end[-1] == ':')
            end[-1] = 0;
        return;
    }
}

/* Is it one of the names in the list? */
static bool is_named(const char *variable, const char *list)
{
    size_t bytes = strcspn(variable, "=");
    for (const char *name = list; name; name = strchr(name, ' ') ? strchr(name, ' ') + 1 : NULL)
        if (strcspn(name, " ") == bytes && strncmp(name, variable, bytes) == 0)
            return true;
    return false;
}

/* Take out what who started the program had not given it. */
static void remove_added(char **environment)
{
    static const char name[] = "INTERPOSE_ADDED";
    const char *added = getenv(name);
    char **kept = environment;
    for (char **each = environment; added && *each; each++)
        if (!is_named(*each, name) && !is_named(*each, added))
            *kept++ = *each;
    if (added)
        *kept = NULL;
}

static bool find_place(const char *path)
{
    if (strlen(path) >= sizeof place)
        return false;
    strcpy(place, path);
    for (int level = 0; level < LEVELS; level++) {
        char *slash = strrchr(place, '/');
        if (!slash)
            return false;
        *slash = 0;
    }
    return true;
}

/* Is recording switched on, and this an interpreter that tells what its hook needs to know (from 3.11 on)? */
static bool is_wanted(void)
{
    const char *said = getenv("INTERPOSE");
    return said && *said && strcmp(said, "0") != 0 && dlsym(RTLD_DEFAULT, "Py_Version");
}

/* --- a program in another language */

static const char program_library[] = "libinterpose_program.so";

/* Only a recorded process, or `interpose run`, starts a program with us. */
static bool has_place(void)
{
    const char *said = getenv("INTERPOSE_LINEAGE");
    return said && strchr(said, '/');
}

/* Beside our own library. Where it cannot be loaded, the program runs as it would. */
static void begin_program(const char *path, int count, char **arguments)
{
    char beside[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t directory = slash ? (size_t)(slash + 1 - path) : 0;
    if (!directory || directory + sizeof program_library > sizeof beside)
        return;
    memcpy(beside, path, directory);
    memcpy(beside + directory, program_library, sizeof program_library);
    void *loaded = dlopen(beside, RTLD_NOW | RTLD_LOCAL);
    void (*start)(int, char **) = loaded ? dlsym(loaded, "interpose_program_begin") : NULL;
    if (start)
        start(count, arguments);
}

__attribute__((constructor)) static void begin(int count, char **arguments, char **environment)
{
    Dl_info library;
    int saved = errno;
    if (!dladdr((void *)begin, &library) || !library.dli_fname)
        return;
    restore_preload(environment, library.dli_fname);
    int (*add)(audit_hook, void *) = dlsym(RTLD_DEFAULT, "PySys_AddAuditHook");
    if (add && is_wanted() && find_place(library.dli_fname))
        add_hook(add);
    if (!add && has_place())
        begin_program(library.dli_fname, count, arguments);
    if (!add)
        remove_added(environ);
    errno = saved;
}
