/* What lies behind each descriptor: a file, a terminal, a socket, a pipe; its name; and whether anybody waits for work
   there.

   It is asked of the kernel at the first use of a descriptor (two or three system calls, own cost), and forgotten when
   the program closes it or makes another in its place. All of it runs with the interpreter's lock held. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/detail_levels.h"
#include "core/recorder.h"
#include "hooks/stubs.h"

enum { DESCRIPTORS_KNOWN = 8192 };

enum role { ROLE_NONE, ROLE_CLIENT, ROLE_CONNECTION, ROLE_LISTENER };

enum last { LAST_NOTHING, LAST_SENT, LAST_RECEIVED };

enum { WATCHERS = 2 };

struct descriptor {
    uint32_t name;                /* a number in strings */
    uint32_t watchers[WATCHERS];  /* the objects that wait for it, as watcher_of tells them, or 0 */
    uint32_t answers;             /* of a client: how many answers servers here had given when it received something */
    uint8_t known;
    uint8_t kind; /* file, screen, net or process (pipes) */
    uint8_t role, last;
};

static struct descriptor descriptors[DESCRIPTORS_KNOWN];

static int descriptors_end; /* above the highest one that was ever known */

static int watched_end;     /* and that anything ever waited for */

static bool networks_known; /* any of them is a socket */

static uint32_t answers;    /* given on servers' connections */

/* How the descriptor of a raw file and of a socket is had: their own C methods. */
enum { DESCRIPTOR_OWNERS = 3 };

static struct {
    PyTypeObject *type;
    PyObject *(*ask)(PyObject *, PyObject *);
} descriptor_owners[DESCRIPTOR_OWNERS];

static void descriptor_owner_add(unsigned place, PyTypeObject *type, void *ask)
{
    descriptor_owners[place].type = type;
    descriptor_owners[place].ask = (PyObject * (*)(PyObject *, PyObject *)) ask;
}

/* The value of an int of one digit, as nearly all descriptors are; -1 of another. */
static inline int value_of_digit(const PyObject *number)
{
#if PY_VERSION_HEX >= 0x030c0000
    const PyLongObject *digits = (const PyLongObject *)number;
    return PyUnstable_Long_IsCompact(digits) ? (int)PyUnstable_Long_CompactValue(digits) : -1;
#else
    return Py_SIZE(number) == 1 ? (int)((const PyLongObject *)number)->ob_digit[0] : -1;
#endif
}

static inline int descriptor_of_number(PyObject *number)
{
    int overflow, digit = value_of_digit(number);
    if (LIKELY(digit > 0))
        return digit;
    long value = PyLong_AsLongAndOverflow(number, &overflow);
    return overflow || value < 0 || value > INT32_MAX ? -1 : (int)value;
}

/* A closed one raises, which is nobody's business. */
static int descriptor_of_owner(PyObject *owner, PyObject *(*ask)(PyObject *, PyObject *))
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *number = ask(owner, NULL);
    int found = number && PyLong_CheckExact(number) ? descriptor_of_number(number) : -1;
    Py_XDECREF(number);
    PyErr_Restore(type, value, traceback);
    return found;
}

/* What lies under a text or a buffer of the standard library, as its C type has it; a new reference or NULL. */
static PyObject *what_lies_under(PyObject *object)
{
    PyObject *type, *value, *traceback;
    const char *name = Py_TYPE(object)->tp_name;
    const char *attribute = strcmp(name, "_io.TextIOWrapper") == 0 ? "buffer" : strncmp(name, "_io.Buffered", 12) == 0 ? "raw" : NULL;
    if (!attribute)
        return NULL;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *under = PyObject_GetAttrString(object, attribute);
    PyErr_Restore(type, value, traceback);
    return under;
}

static int descriptor_of(PyObject *object);

static __attribute__((noinline)) int descriptor_under(PyObject *object)
{
    for (unsigned place = 0; place < DESCRIPTOR_OWNERS; place++)
        if (descriptor_owners[place].type && PyObject_TypeCheck(object, descriptor_owners[place].type))
            return descriptor_of_owner(object, descriptor_owners[place].ask);
    PyObject *under = what_lies_under(object);
    int number = under ? descriptor_of(under) : -1;
    Py_XDECREF(under);
    return number;
}

/* The descriptor that an object stands for, or -1. Nothing of the program's is run. */
static inline int descriptor_of(PyObject *object)
{
    if (!object)
        return -1;
    return PyLong_CheckExact(object) ? descriptor_of_number(object) : descriptor_under(object);
}

/* --- what the kernel says */

static uint32_t intern_address(const struct sockaddr_storage *address, socklen_t bytes)
{
    char text[sizeof(struct sockaddr_un) + 16], host[INET6_ADDRSTRLEN];
    int length = 0;
    if (address->ss_family == AF_INET && ((const struct sockaddr_in *)(const void *)address)->sin_port) {
        const struct sockaddr_in *four = (const void *)address;
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
        length = snprintf(text, sizeof text, "%s:%u", host, ntohs(four->sin_port));
    } else if (address->ss_family == AF_INET6 && ((const struct sockaddr_in6 *)(const void *)address)->sin6_port) {
        const struct sockaddr_in6 *six = (const void *)address;
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        length = snprintf(text, sizeof text, "[%s]:%u", host, ntohs(six->sin6_port));
    } else if (address->ss_family == AF_UNIX && bytes > offsetof(struct sockaddr_un, sun_path)) {
        const struct sockaddr_un *local = (const void *)address;
        bool abstract = local->sun_path[0] == 0;
        size_t room = bytes - offsetof(struct sockaddr_un, sun_path) - abstract;
        length = snprintf(text, sizeof text, "%s%.*s", abstract ? "@" : "", (int)strnlen(local->sun_path + abstract, room),
                          local->sun_path + abstract);
    }
    return length > 0 ? argument_intern(KIND_net, text, (size_t)length) : 0;
}

static uint32_t intern_literal(const char *text)
{
    return string_intern(text, strlen(text));
}

static void learn_socket(struct descriptor *known, int number)
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    int listens = 0, sort = 0;
    socklen_t size = sizeof listens;
    known->kind = KIND_net;
    networks_known = true;
    if (getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens)
        known->role = ROLE_LISTENER;
    if (getpeername(number, (struct sockaddr *)&address, &bytes) == 0)
        known->name = intern_address(&address, bytes);
    bytes = sizeof address;
    if (!known->name && getsockname(number, (struct sockaddr *)&address, &bytes) == 0) {
        known->name = intern_address(&address, bytes);
        size = sizeof sort;
        if (known->name && getsockopt(number, SOL_SOCKET, SO_TYPE, &sort, &size) == 0 && sort == SOCK_DGRAM)
            known->role = ROLE_LISTENER; /* it has an address, and nobody in particular at the other end */
    }
    if (!known->name)
        known->name = intern_literal("<socket>");
}

/* Its path, or what it is where it has none: `<pipe>`, `<eventpoll>`. */
static uint32_t intern_link(int number)
{
    char link[64], text[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", number);
    ssize_t bytes = readlink(link, text, sizeof text - 1);
    if (bytes <= 0)
        return string_intern(link, (size_t)snprintf(link, sizeof link, "descriptor %d", number));
    text[bytes] = 0;
    if (text[0] == '/')
        return argument_intern(KIND_file, text, (size_t)bytes);
    char *named = strncmp(text, "anon_inode:", 11) == 0 ? text + 11 + (text[11] == '[') : text;
    named[strcspn(named, ":]")] = 0;
    return string_intern(link, (size_t)snprintf(link, sizeof link, "<%.40s>", named));
}

static void learn(struct descriptor *known, int number)
{
    static const char *const streams[] = {"<stdin>", "<stdout>", "<stderr>"};
    struct stat status;
    *known = (struct descriptor){.known = 1, .kind = KIND_file};
    bool there = fstat(number, &status) == 0;
    if (there && S_ISSOCK(status.st_mode)) {
        learn_socket(known, number);
        return;
    }
    if (there && S_ISFIFO(status.st_mode))
        known->kind = KIND_process;
    if (number <= STDERR_FILENO || (there && S_ISCHR(status.st_mode) && isatty(number)))
        known->kind = KIND_screen;
    known->name = number <= STDERR_FILENO ? intern_literal(streams[number]) : there ? intern_link(number) : 0;
    known->known = there;
}

static __attribute__((noinline)) void first_use(struct descriptor *known, int number)
{
    struct thread *thread = current_thread;
    struct reading begin = own_begin(thread);
    int saved = errno;
    learn(known, number);
    errno = saved;
    if (number >= descriptors_end)
        descriptors_end = number + 1;
    own_end(thread, begin);
}

/* What is known of a descriptor; NULL for a number that is none, or too high to be kept. */
static inline struct descriptor *descriptor_known(int number)
{
    if (number < 0 || number >= DESCRIPTORS_KNOWN)
        return NULL;
    struct descriptor *known = &descriptors[number];
    if (UNLIKELY(!known->known))
        first_use(known, number);
    return known;
}

static void forget_descriptors(void)
{
    memset(descriptors, 0, sizeof *descriptors * (size_t)descriptors_end);
    descriptors_end = watched_end = 0;
    networks_known = false;
}

static void descriptor_forget(int number)
{
    if (number >= 0 && number < DESCRIPTORS_KNOWN)
        descriptors[number] = (struct descriptor){0};
}

/* What it is need not be asked of the kernel. */
static void descriptor_set(int number, struct descriptor known)
{
    if (number < 0 || number >= DESCRIPTORS_KNOWN)
        return;
    known.known = 1;
    descriptors[number] = known;
    if (number >= descriptors_end)
        descriptors_end = number + 1;
}

/* --- waiting for work, or for an answer */

/* Does a wait on this descriptor end with new work, rather than with the answer to something? */
static bool is_idle(const struct descriptor *known)
{
    if (known->kind != KIND_net)
        return true;
    switch (known->role) {
    case ROLE_CLIENT: /* where nothing is served, a client waits for the rest of its answer */
        return known->last == LAST_RECEIVED && known->answers != answers;
    case ROLE_CONNECTION:
        return known->last != LAST_RECEIVED;
    case ROLE_LISTENER:
        return true;
    default:
        return known->last != LAST_SENT;
    }
}

/* A number for an object that waits for registered descriptors; never 0. */
static uint32_t watcher_of(const PyObject *object)
{
    uint32_t number = (uint32_t)((uintptr_t)object >> 4);
    return number ? number : 1;
}

static bool is_watched_by(const struct descriptor *known, uint32_t watcher)
{
    return known->watchers[0] == watcher || known->watchers[1] == watcher;
}

static void watch(struct descriptor *known, uint32_t watcher)
{
    if (!is_watched_by(known, watcher))
        known->watchers[known->watchers[0] ? 1 : 0] = watcher;
    if (known - descriptors >= watched_end)
        watched_end = (int)(known - descriptors) + 1;
}

static void unwatch(struct descriptor *known, uint32_t watcher)
{
    for (unsigned place = 0; place < WATCHERS; place++)
        if (known->watchers[place] == watcher)
            known->watchers[place] = 0;
}

/* The watcher is gone, or it is a new one in the place of one that is. */
static void unwatch_all(const PyObject *object)
{
    uint32_t watcher = watcher_of(object);
    for (int number = 0; number < watched_end; number++)
        unwatch(&descriptors[number], watcher);
}

static enum kind kind_of_watched(const PyObject *object)
{
    uint32_t watcher = watcher_of(object);
    for (int number = 0; number < watched_end; number++)
        if (is_watched_by(&descriptors[number], watcher) && descriptors[number].known && !is_idle(&descriptors[number]))
            return KIND_net;
    return KIND_idle;
}

/* A list of what a list, a tuple, a set or a dictionary holds; NULL for what only the program can iterate over. */
static PyObject *selected_list(PyObject *selected)
{
    PyObject *type, *value, *traceback, *list = NULL;
    if (PyList_CheckExact(selected) || PyTuple_CheckExact(selected))
        return Py_NewRef(selected);
    if (!PyAnySet_CheckExact(selected) && !PyDict_CheckExact(selected))
        return NULL;
    PyErr_Fetch(&type, &value, &traceback);
    list = PySequence_List(selected);
    PyErr_Restore(type, value, traceback);
    return list;
}

static bool all_idle(PyObject *list)
{
    for (Py_ssize_t index = 0; index < PySequence_Fast_GET_SIZE(list); index++) {
        const struct descriptor *known = descriptor_known(descriptor_of(PySequence_Fast_GET_ITEM(list, index)));
        if (!known || !is_idle(known))
            return false;
    }
    return true;
}

static enum kind kind_of_selected(PyObject *const *lists, Py_ssize_t count)
{
    bool any = false, idle = true;
    for (Py_ssize_t each = 0; each < count && each < 3; each++) {
        PyObject *list = selected_list(lists[each]);
        any = any || !list || PySequence_Fast_GET_SIZE(list);
        idle = idle && list && all_idle(list);
        Py_XDECREF(list);
    }
    return !any ? KIND_sleep : idle ? KIND_idle : KIND_net;
}
