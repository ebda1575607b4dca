#include "hooks/idle_descriptors.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "cpython/side_lock.h"
#include "hooks/object_descriptor.h"

uint32_t answers;

static bool is_connected(int number)
{
    struct sockaddr_storage address;
    socklen_t bytes = sizeof address;
    return getpeername(number, (struct sockaddr *)&address, &bytes) == 0;
}

static bool takes_datagrams(int number)
{
    int sort = 0;
    socklen_t bytes = sizeof sort;
    return getsockopt(number, SOL_SOCKET, SO_TYPE, &sort, &bytes) == 0 && sort == SOCK_DGRAM && !is_connected(number);
}

static bool is_listener(int number)
{
    int listens = 0;
    socklen_t bytes = sizeof listens;
    bool is_socket = getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) == 0;
    return is_socket && (listens || takes_datagrams(number));
}

static enum service service_now(void)
{
    return (enum service)__atomic_load_n(&service, __ATOMIC_RELAXED);
}

static void service_is(enum service reached)
{
    if (service_now() < reached)
        __atomic_store_n(&service, (uint8_t)reached, __ATOMIC_RELAXED);
}

void serves_by(int number)
{
    const struct descriptor *known = descriptor_known(number);
    bool may_listen = known && __atomic_load_n(&known->role, __ATOMIC_RELAXED) == ROLE_LISTENER;
    if (!may_listen || __atomic_load_n(&listener, __ATOMIC_RELAXED) == number || !is_listener(number))
        return;
    __atomic_store_n(&listener, number, __ATOMIC_RELAXED);
    service_is(SERVICE_OFFERED);
}

/* Is the listener still open? The kernel is asked, because loops in C close their descriptors unseen: once a wait. */
enum open_listener { LISTENER_NOT_ASKED, LISTENER_OPEN, LISTENER_CLOSED };

static bool has_open_listener(enum open_listener *asked)
{
    int number = __atomic_load_n(&listener, __ATOMIC_RELAXED);
    if (*asked == LISTENER_NOT_ASKED)
        *asked = number != NO_LISTENER && is_listener(number) ? LISTENER_OPEN : LISTENER_CLOSED;
    return *asked == LISTENER_OPEN;
}

/* A program whose listener nobody uses is a client. What it used before it had the listener was part of its start. */
static bool serves(struct descriptor client, enum open_listener *asked)
{
    return (service_now() == SERVICE_USED || client.used_as == SERVICE_NONE) && has_open_listener(asked);
}

/* No answer is due to a server that has sent nothing since it last received something. Where nothing is served, a client that has
   received something may wait for the rest of its answer. */
static bool is_client_idle(int number, struct descriptor known, enum open_listener *asked)
{
    if (known.last == LAST_SENT)
        return false;
    if (known.last == LAST_RECEIVED && known.answers != __atomic_load_n(&answers, __ATOMIC_RELAXED))
        return true;
    return serves(known, asked) && (known.last == LAST_RECEIVED || is_connected(number));
}

static bool brings_work(int number, struct descriptor known, enum open_listener *asked)
{
    if (known.kind != KIND_net || known.last == LAST_FOR_WORK)
        return true;
    switch (known.role) {
    case ROLE_CLIENT:
        return is_client_idle(number, known, asked);
    case ROLE_CONNECTION:
        return known.last != LAST_RECEIVED;
    case ROLE_LISTENER:
        return true;
    default:
        return known.last != LAST_SENT;
    }
}

bool is_idle(int number, struct descriptor known)
{
    enum open_listener asked = LISTENER_NOT_ASKED;
    return brings_work(number, known, &asked);
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
    if (role == ROLE_CONNECTION)
        service_is(SERVICE_USED);
    if (number < 0 || number >= DESCRIPTORS_KNOWN)
        return;
    struct descriptor *known = &descriptors[number];
    __atomic_store_n(&known->role, (uint8_t)role, __ATOMIC_RELAXED);
    descriptor_known(number); /* now, so that the kernel is not asked for its role */
    __atomic_store_n(&known->used_as, (uint8_t)service_now(), __ATOMIC_RELAXED);
    descriptor_changes(known);
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
    enum role role = (enum role)__atomic_load_n(&known->role, __ATOMIC_RELAXED);
    enum last before = (enum last)__atomic_load_n(&known->last, __ATOMIC_RELAXED);
    bool is_work = last == LAST_RECEIVED && before == LAST_FOR_WORK;
    if (role == ROLE_LISTENER && last == LAST_RECEIVED && before != LAST_SENT) /* a datagram that nobody had asked for */
        service_is(SERVICE_USED);
    if (!is_work) /* what was asked for has come, and nobody waits for an answer until something else is sent */
        __atomic_store_n(&known->last, (uint8_t)last, __ATOMIC_RELAXED);
    __atomic_store_n(&known->answers, __atomic_load_n(&answers, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    __atomic_store_n(&known->used_as, (uint8_t)service_now(), __ATOMIC_RELAXED);
    descriptor_changes(known);
    if (last == LAST_SENT && role == ROLE_CONNECTION)
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
    descriptor_changes(known);
    serves_by((int)(known - descriptors));
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

static bool is_open(int number)
{
    bool is_there = fcntl(number, F_GETFD) >= 0;
    if (!is_there)
        descriptor_forget(number);
    return is_there;
}

/* What is waited for, as far as descriptors were looked at. */
struct awaited {
    bool request; /* a server's own answer */
    bool answer;  /* somebody else's */
    bool other;   /* who may send at any time: a client, a server, the user */
};

static void add_awaited(struct awaited *awaited, int number, struct descriptor known, enum open_listener *asked)
{
    bool is_busy = !brings_work(number, known, asked);
    awaited->request |= is_busy && known.role == ROLE_CONNECTION;
    awaited->answer |= is_busy && known.role != ROLE_CONNECTION;
    awaited->other |= known.kind == KIND_screen || (known.kind == KIND_net && known.role != ROLE_NONE);
    look_for_other_end(number, known);
}

static enum kind kind_of_awaited(struct awaited awaited)
{
    return awaited.request || awaited.answer ? KIND_net : KIND_idle;
}

/* A server has children that live as long as itself. So a loop that also waits for others waits for work. */
static bool is_nobody(struct awaited awaited)
{
    return !awaited.request && !awaited.answer && !awaited.other;
}

/* A server may have thousands of connections, most of them between two requests. */
static int first_to_look_at(int number, int end)
{
    const bool *found = number < end ? memchr(passed_over + number, false, (size_t)(end - number)) : NULL;
    return found ? (int)(found - passed_over) : end;
}

static bool is_between_requests(struct descriptor known)
{
    return known.known && known.kind == KIND_net && known.role == ROLE_CONNECTION && known.last != LAST_RECEIVED;
}

static void note_passed_over(int number)
{
    struct descriptor now = descriptor_now(&descriptors[number]);
    if (!IS_FREE_THREADED && (is_between_requests(now) || !(now.watchers[0] | now.watchers[1])))
        passed_over[number] = true;
}

static void add_watched(struct awaited *awaited, int number, bool is_sure, enum open_listener *asked)
{
    struct descriptor now = descriptor_now(&descriptors[number]);
    struct awaited more = *awaited;
    if (!now.known)
        return;
    add_awaited(&more, number, now, asked);
    if (memcmp(&more, awaited, sizeof more) && (!is_sure || is_open(number)))
        *awaited = more;
}

/* Is an answer due: `request`, or `answer`, with which looking ends? */
static struct awaited answers_due(uint32_t watcher, bool is_sure)
{
    struct awaited awaited = {0};
    enum open_listener asked = LISTENER_NOT_ASKED;
    int end = end_of_watched(), number = first_to_look_at(0, end);
    for (; number < end && !awaited.answer; number = first_to_look_at(number + 1, end)) {
        if (is_watched_by(&descriptors[number], watcher))
            add_watched(&awaited, number, is_sure, &asked);
        note_passed_over(number);
    }
    return awaited;
}

enum kind kind_of_watched(uint32_t watcher, bool is_sure)
{
    return kind_of_awaited(answers_due(watcher, is_sure));
}

bool watches_nobody(uint32_t watcher)
{
    struct awaited awaited = {0};
    enum open_listener asked = LISTENER_NOT_ASKED;
    for (int number = 0, end = end_of_watched(); number < end && is_nobody(awaited); number++)
        if (is_watched_by(&descriptors[number], watcher))
            add_watched(&awaited, number, true, &asked);
    return is_nobody(awaited);
}

bool awaits_others(uint32_t watcher, bool is_sure)
{
    return answers_due(watcher, is_sure).answer;
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

/* What is unknown may be somebody's answer. */
static void add_selected(struct awaited *awaited, PyObject *list, enum open_listener *asked)
{
    awaited->answer |= !list;
    for (Py_ssize_t index = 0; !awaited->answer && index < PySequence_Fast_GET_SIZE(list); index++) {
        int number = descriptor_of_waited(PySequence_Fast_GET_ITEM(list, index));
        const struct descriptor *known = descriptor_known(number);
        serves_by(number);
        if (known)
            add_awaited(awaited, number, descriptor_now(known), asked);
        else
            awaited->answer = true;
    }
}

static struct awaited selected(PyObject *const *lists, Py_ssize_t count, bool *any)
{
    struct awaited awaited = {0};
    enum open_listener asked = LISTENER_NOT_ASKED;
    for (Py_ssize_t each = 0; each < count && each < 3; each++) {
        PyObject *list = selected_list(lists[each]);
        *any = *any || !list || PySequence_Fast_GET_SIZE(list);
        add_selected(&awaited, list, &asked);
        Py_XDECREF(list);
    }
    return awaited;
}

enum kind kind_of_selected(PyObject *const *lists, Py_ssize_t count)
{
    bool any = false;
    struct awaited awaited = selected(lists, count, &any);
    return any ? kind_of_awaited(awaited) : KIND_sleep;
}

bool selects_nobody(PyObject *const *lists, Py_ssize_t count)
{
    bool any = false;
    return is_nobody(selected(lists, count, &any));
}

bool is_childs(int number)
{
    return is_known_already(number) && is_of_child(descriptor_now(&descriptors[number]));
}

/* Of select.select: lists of what was given; of the others: pairs of a number and what happened. */
static bool any_is_childs(PyObject *ready)
{
    bool found = false;
    for (Py_ssize_t index = 0; !found && PyList_CheckExact(ready) && index < PyList_GET_SIZE(ready); index++) {
        PyObject *each = PyList_GET_ITEM(ready, index);
        bool is_pair = PyTuple_CheckExact(each) && PyTuple_GET_SIZE(each) == 2;
        found = is_childs(descriptor_of_waited(is_pair ? PyTuple_GET_ITEM(each, 0) : each));
    }
    return found;
}

bool brings_childs(PyObject *result)
{
    bool found = any_is_childs(result);
    for (Py_ssize_t index = 0; !found && PyTuple_CheckExact(result) && index < PyTuple_GET_SIZE(result); index++)
        found = any_is_childs(PyTuple_GET_ITEM(result, index));
    return found;
}
