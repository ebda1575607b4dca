#include "hooks/idle_descriptors.h"

#include <fcntl.h>

#include "cpython/side_lock.h"
#include "hooks/object_descriptor.h"

uint32_t answers;

bool is_idle(struct descriptor known)
{
    if (known.kind != KIND_net || known.last == LAST_FOR_WORK)
        return true;
    switch (known.role) {
    case ROLE_CLIENT: /* where nothing is served, a client waits for the rest of its answer */
        return known.last == LAST_RECEIVED && known.answers != __atomic_load_n(&answers, __ATOMIC_RELAXED);
    case ROLE_CONNECTION:
        return known.last != LAST_RECEIVED;
    case ROLE_LISTENER:
        return true;
    default:
        return known.last != LAST_SENT;
    }
}

uint32_t watcher_of(const PyObject *object)
{
    uint32_t number = (uint32_t)((uintptr_t)object >> 4);
    return number ? number : 1;
}

/* No object is at such an address. */
uint32_t watcher_of_thread(uint32_t number)
{
    return UINT32_MAX - number;
}

void descriptor_has_role(int number, enum role role)
{
    struct descriptor *known = descriptor_known(number);
    if (known)
        __atomic_store_n(&known->role, (uint8_t)role, __ATOMIC_RELAXED);
}

static bool is_known_already(int number)
{
    return number >= 0 && number < DESCRIPTORS_KNOWN && __atomic_load_n(&descriptors[number].known, __ATOMIC_ACQUIRE);
}

void descriptor_moved(int number, enum last last, bool is_known)
{
    struct descriptor *known = !is_known || is_known_already(number) ? descriptor_known(number) : NULL;
    if (!known)
        return;
    __atomic_store_n(&known->last, (uint8_t)last, __ATOMIC_RELAXED);
    __atomic_store_n(&known->answers, __atomic_load_n(&answers, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    if (last == LAST_SENT && __atomic_load_n(&known->role, __ATOMIC_RELAXED) == ROLE_CONNECTION)
        __atomic_add_fetch(&answers, 1, __ATOMIC_RELAXED);
}

void descriptor_watch(int number, uint32_t watcher, void (*set)(struct descriptor *, uint32_t))
{
    struct descriptor *known = descriptor_known(number);
    if (known && side_begin(SIDE_WATCHERS)) {
        set(known, watcher);
        side_end(SIDE_WATCHERS);
    }
}

static uint32_t watcher_at(const struct descriptor *known, unsigned place)
{
    return __atomic_load_n(&known->watchers[place], __ATOMIC_RELAXED);
}

static void set_watcher_at(struct descriptor *known, unsigned place, uint32_t watcher)
{
    __atomic_store_n(&known->watchers[place], watcher, __ATOMIC_RELAXED);
}

static bool is_watched_by(const struct descriptor *known, uint32_t watcher)
{
    return watcher_at(known, 0) == watcher || watcher_at(known, 1) == watcher;
}

static int end_of_watched(void)
{
    return __atomic_load_n(&watched_end, __ATOMIC_RELAXED);
}

void watch(struct descriptor *known, uint32_t watcher)
{
    if (!is_watched_by(known, watcher))
        set_watcher_at(known, watcher_at(known, 0) ? 1 : 0, watcher);
    int end = end_of_watched(), own = (int)(known - descriptors) + 1;
    while (end < own && !__atomic_compare_exchange_n(&watched_end, &end, own, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

void unwatch(struct descriptor *known, uint32_t watcher)
{
    for (unsigned place = 0; place < WATCHERS; place++)
        if (watcher_at(known, place) == watcher)
            set_watcher_at(known, place, 0);
}

void unwatch_all(const PyObject *object)
{
    uint32_t watcher = watcher_of(object);
    if (!side_begin(SIDE_WATCHERS))
        return;
    for (int number = 0, end = end_of_watched(); number < end; number++)
        unwatch(&descriptors[number], watcher);
    side_end(SIDE_WATCHERS);
}

static bool is_busy(struct descriptor known)
{
    return known.known && !is_idle(known);
}

static bool is_open(int number)
{
    bool is_there = fcntl(number, F_GETFD) >= 0;
    if (!is_there)
        descriptor_forget(number);
    return is_there;
}

static bool any_is_busy(uint32_t watcher, bool is_sure, bool with_requests)
{
    for (int number = 0, end = end_of_watched(); number < end; number++) {
        struct descriptor now = descriptor_now(&descriptors[number]);
        bool may_be_busy = is_watched_by(&descriptors[number], watcher) && is_busy(now);
        bool counts = with_requests || now.role != ROLE_CONNECTION;
        if (may_be_busy && counts && (!is_sure || is_open(number)))
            return true;
    }
    return false;
}

enum kind kind_of_watched(uint32_t watcher, bool is_sure)
{
    return any_is_busy(watcher, is_sure, true) ? KIND_net : KIND_idle;
}

bool awaits_others(uint32_t watcher, bool is_sure)
{
    return any_is_busy(watcher, is_sure, false);
}

/* A list of what a list, a tuple, a set or a dictionary holds; NULL for what only the program can iterate over. */
static PyObject *selected_list(PyObject *selected)
{
    PyObject *type, *value, *traceback, *list = NULL;
    bool may_change = IS_FREE_THREADED && PyList_CheckExact(selected); /* by another thread, while it is being read */
    if ((PyList_CheckExact(selected) && !may_change) || PyTuple_CheckExact(selected))
        return Py_NewRef(selected);
    if (!may_change && !PyAnySet_CheckExact(selected) && !PyDict_CheckExact(selected))
        return NULL;
    PyErr_Fetch(&type, &value, &traceback);
    list = PySequence_List(selected);
    PyErr_Restore(type, value, traceback);
    return list;
}

static bool all_idle(PyObject *list)
{
    for (Py_ssize_t index = 0; index < PySequence_Fast_GET_SIZE(list); index++) {
        const struct descriptor *known = descriptor_known(descriptor_of_waited(PySequence_Fast_GET_ITEM(list, index)));
        if (!known || !is_idle(descriptor_now(known)))
            return false;
    }
    return true;
}

enum kind kind_of_selected(PyObject *const *lists, Py_ssize_t count)
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
