/* A call that a shim times, and what it was given; how its detail and its kind are found. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <structmember.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/detail_levels.h"
#include "core/recorder.h"
#include "hooks/stubs.h"
#include "hooks/object_descriptor.h"
#include "hooks/idle_descriptors.h"
#include "hooks/descriptors.h"
#include "cpython/sites.h"
#include "core/statement.h"
#include "hooks/attribute_names.h"
#include "hooks/object_texts.h"
#include "hooks/statement_detail.h"
#include "hooks/path_detail.h"
#include "hooks/address_detail.h"
#include "hooks/command_detail.h"
#include "core/filter.h"
#include "cpython/frame.h"
#include "hooks/filtered_stacks.h"
#include "hooks/lock_holders.h"
#include "hooks/locks.h"
#include "cpython/attributes.h"
#include "hooks/url_detail.h"
#include "hooks/route_detail.h"
#include "cpython/ownership.h"
#include "hooks/database_server.h"

/* A call that a shim times: the span, and what the call was given, in whatever way it was given it. */
struct call {
    struct span span;
    const struct slot *slot;
    PyObject *owner;
    PyObject *const *arguments;
    Py_ssize_t count;
    PyObject *names; /* the names of the arguments behind `count`, a dictionary of them, or NULL */
    int descriptor; /* that it is about, or -1 */
    const struct descriptor *known; /* of traffic: what is known of it, or NULL */
    uint8_t terminal; /* of what reads or writes a terminal whose dialogue is kept: its state (hooks/terminal.h); else 0 */
    struct child *child; /* of what is recorded before it is tried: its record, or NULL */
};

/* How arguments are to be understood: of a METH_NOARGS, METH_O or METH_VARARGS function; of a Python function that is a
   method. */
enum shape { SHAPE_NOTHING, SHAPE_ONE, SHAPE_TUPLE, SHAPE_METHOD };

static inline PyObject *const *items_of(PyObject *arguments)
{
    return arguments && PyTuple_Check(arguments) ? ((PyTupleObject *)arguments)->ob_item : NULL;
}

static inline PyObject *first_of(PyObject *arguments)
{
    return arguments && PyTuple_Check(arguments) && PyTuple_GET_SIZE(arguments) ? PyTuple_GET_ITEM(arguments, 0) : NULL;
}

static inline Py_ssize_t count_of(PyObject *arguments)
{
    return arguments && PyTuple_Check(arguments) ? PyTuple_GET_SIZE(arguments) : 0;
}

static inline PyObject *argument_of(const struct call *call, Py_ssize_t number)
{
    return number < call->count ? call->arguments[number] : NULL;
}

/* An argument that was given by the name that the slot knows; NULL where it was not. */
static __attribute__((noinline)) PyObject *named_argument(const struct call *call)
{
    PyObject *names = call->names, *keyword = call->slot->keyword;
    if (names && PyDict_CheckExact(names))
        return PyDict_GetItemWithError(names, keyword);
    for (Py_ssize_t place = 0; names && place < PyTuple_GET_SIZE(names); place++)
        if (PyTuple_GET_ITEM(names, place) == keyword)
            return call->arguments[call->count + place];
    return NULL;
}

/* What the detail is of; NULL where it was not given. */
static inline PyObject *subject_of(const struct call *call)
{
    if (call->slot->subject == SUBJECT_OWNER)
        return call->owner;
    if (LIKELY(call->slot->subject < call->count))
        return call->arguments[call->slot->subject];
    return call->slot->keyword ? named_argument(call) : NULL;
}

/* The descriptor that it is about: the object's own, or that of what is given. */
static int descriptor_of_call(const struct call *call)
{
    const struct slot *slot = call->slot;
    if (slot->effect == EFFECT_watch || slot->effect == EFFECT_unwatch)
        return descriptor_of(argument_of(call, 0));
    if (slot->detail == DETAIL_tls)
        return descriptor_of_tls(call->owner);
    return descriptor_of(slot->detail == DETAIL_address ? call->owner : subject_of(call));
}

/* --- the dialogue */

/* `input`: where both streams are the process's own terminal, C reads and writes there itself. */
static inline bool is_input(const struct slot *slot)
{
    return slot->asks && !slot->traffic && slot->moves == MOVES_result;
}

/* Is what its calls show, or what is typed for them, kept, whether or not they are recorded? */
static inline bool keeps_dialogue(const struct slot *slot)
{
    return UNLIKELY(recorder.dialogue) &&
           (slot->traffic ? slot->moves == MOVES_result : slot->moves == MOVES_frame || is_input(slot));
}

/* --- detail and kind */

static uint32_t detail_of_subject(const struct call *call, PyObject *subject)
{
    switch ((enum detail_kind)call->slot->detail) {
    case DETAIL_statement:
        return statement_detail(subject);
    case DETAIL_descriptor:
        return descriptor_detail(subject);
    case DETAIL_path:
        return path_detail(subject);
    case DETAIL_address:
        return address_detail(subject);
    case DETAIL_host:
        return host_detail(subject, argument_of(call, call->slot->subject + 1));
    case DETAIL_command:
        return command_detail(subject);
    case DETAIL_database:
        return database_detail(subject);
    case DETAIL_tls:
        return detail_of_descriptor(descriptor_of_tls(subject));
    case DETAIL_holder:
        return holder_detail(subject);
    case DETAIL_dsn:
        return dsn_detail(subject, call->names, call->arguments + call->count);
    case DETAIL_server:
        return server_detail(subject, argument_of(call, 3), call->names, call->arguments + call->count);
    case DETAIL_word:
        return word_detail(subject);
    case DETAIL_url:
        return url_detail(KIND_net, NULL, subject);
    case DETAIL_request:
        return url_detail(KIND_net, subject, argument_of(call, call->slot->subject + 1));
    case DETAIL_served:
        return served_detail(call->owner, subject);
    case DETAIL_type:
        return PyType_Check(subject) ? intern_literal(((PyTypeObject *)subject)->tp_name) : 0;
    case DETAIL_module:
        return module_detail(subject);
    case DETAIL_name:
        return intern_text(call->slot->keyword);
    case DETAIL_none:
        break;
    }
    return 0;
}

/* Of what its attributes are: the last of the one or two, behind the other. */
static __attribute__((noinline)) uint32_t detail_of_attributes(const struct call *call, PyObject *subject)
{
    PyObject *ways = call->slot->attributes;
    PyObject *last = attribute_at(subject, PyTuple_GET_ITEM(ways, PyTuple_GET_SIZE(ways) - 1));
    PyObject *first = PyTuple_GET_SIZE(ways) > 1 ? attribute_at(subject, PyTuple_GET_ITEM(ways, 0)) : NULL;
    uint32_t number = 0;
    if (last)
        number = call->slot->detail == DETAIL_request ? url_detail(KIND_net, first, last) : detail_of_subject(call, last);
    Py_XDECREF(first);
    Py_XDECREF(last);
    return number;
}

/* What names it better than what was known when it began; 0 where nothing does. */
static __attribute__((noinline)) uint32_t detail_of_route(const struct slot *slot, PyObject *subject)
{
    PyObject *ways = slot->attributes;
    if (slot->detail == DETAIL_served) {
        PyObject *told = ways ? attribute_at(subject, PyTuple_GET_ITEM(ways, 0)) : Py_NewRef(subject);
        uint32_t number = told ? told_route_detail(told) : 0;
        Py_XDECREF(told);
        return number;
    }
    PyObject *method = ways ? attribute_at(subject, PyTuple_GET_ITEM(ways, 0)) : NULL;
    uint32_t number = kept_route_detail(subject, slot->route, method);
    Py_XDECREF(method);
    return number;
}

static bool has_route(const struct slot *slot)
{
    return slot->detail == DETAIL_served || slot->route;
}

static uint32_t detail_of_what(const struct call *call, PyObject *subject)
{
    return UNLIKELY(call->slot->attributes) ? detail_of_attributes(call, subject) : detail_of_subject(call, subject);
}

/* Is it told by arguments that were given by name, whatever else was given? */
static bool is_told_by_names(const struct slot *slot)
{
    return slot->subject != SUBJECT_RESULT && (slot->detail == DETAIL_dsn || slot->detail == DETAIL_server);
}

static uint32_t detail_of(const struct call *call)
{
    PyObject *subject = subject_of(call);
    if (UNLIKELY(!subject && !is_told_by_names(call->slot)))
        return 0;
    return detail_of_what(call, subject);
}

/* What is known of it only after the call, which gives or keeps it; NULL: it failed. */
static __attribute__((noinline)) uint32_t late_detail(const struct call *call, PyObject *result)
{
    PyObject *type, *value, *traceback, *subject = subject_of(call);
    uint32_t number = 0;
    PyErr_Fetch(&type, &value, &traceback); /* a look-up clears what is set */
    if (call->slot->subject == SUBJECT_RESULT)
        number = result ? detail_of_what(call, result) : 0;
    else if (call->slot->detail == DETAIL_path && subject)
        number = kept_path(subject);
    else if (call->slot->detail == DETAIL_statement && call->owner)
        number = kept_statement(call->owner);
    PyErr_Restore(type, value, traceback);
    return number;
}

/* The kinds of numbers of intrinsics, each plus one; all that are numbered higher are of none. */
enum { NUMBERS_KNOWN = 4096 };

static uint8_t number_kinds[NUMBERS_KNOWN];

static void number_is_of(uint32_t number, enum kind kind)
{
    if (number < NUMBERS_KNOWN)
        number_kinds[number] = (uint8_t)(kind + 1);
}

static void forget_number_kinds(void)
{
    memset(number_kinds, 0, sizeof number_kinds);
}

static inline bool is_number_of(uint32_t number, enum kind kind)
{
    return number < NUMBERS_KNOWN && number_kinds[number] == kind + 1;
}

static inline bool is_idle_number(uint32_t number)
{
    return is_number_of(number, KIND_idle);
}

/* Is the call that is made inside one of that kind? */
static inline bool inside(const struct thread *thread, enum kind kind)
{
    uint32_t depth = thread->record->fields.depth;
    if (LIKELY(depth == 0 || depth > OPEN_CALLS))
        return false;
    return is_number_of(thread->record->open[depth - 1].intrinsic, kind);
}

static bool is_generator_of(PyObject *object, const char *name)
{
    return object && PyGen_CheckExact(object) && PyUnicode_CompareWithASCIIString(((PyGenObject *)object)->gi_name, name) == 0;
}

/* Does a command of Redis wait for what others will put there? */
static bool is_blocking_command(PyObject *command)
{
    static const char names[] = "BLPOP\0BRPOP\0BLMOVE\0BRPOPLPUSH\0BLMPOP\0BZPOPMIN\0BZPOPMAX\0BZMPOP\0";
    Py_ssize_t bytes;
    const char *text = bytes_of_text(command, &bytes);
    return text && is_one_of(text, (size_t)bytes, names);
}

static enum kind kind_of_descriptor(const struct descriptor *known)
{
    return known ? (enum kind)known->kind : KIND_file;
}

static enum kind kind_of_receiver(const struct descriptor *known)
{
    bool serves = known && (known->role == ROLE_CONNECTION || known->role == ROLE_LISTENER);
    return serves && is_idle(known) ? KIND_idle : KIND_net;
}

static inline uint32_t kind_of_traffic(const struct slot *slot, const struct descriptor *known,
                                       const struct thread *thread)
{
    enum kind kind = kind_of_descriptor(known);
    bool waits = (kind == KIND_process || kind == KIND_net) && inside(thread, KIND_idle);
    return slot->kinds[waits ? KIND_idle : kind];
}

/* Is a request being served, or a task run, by the thread? */
static bool is_serving(const struct thread *thread)
{
    uint32_t depth = thread->record->fields.depth;
    for (uint32_t index = depth < OPEN_CALLS ? depth : OPEN_CALLS; index > 0; index--)
        if (thread->record->open[index - 1].call && is_number_of(thread->record->open[index - 1].intrinsic, KIND_logic))
            return true;
    return false;
}

/* Whose answer somebody waits for does not wait for work: a queue is another thread's, a child does its part. */
static uint32_t busy_while_serving(const struct slot *slot, uint32_t kind, const struct thread *thread)
{
    bool has_other = slot->numbers > 1 && is_idle_number(slot->intrinsic + kind);
    return has_other && is_serving(thread) ? !kind : kind;
}

static uint32_t kind_by_choice(const struct call *call)
{
    const struct slot *slot = call->slot;
    switch ((enum choice)slot->choice) {
    case CHOICE_receive:
        return slot->kinds[kind_of_receiver(descriptor_known(call->descriptor))];
    case CHOICE_select:
        return slot->kinds[kind_of_selected(call->arguments, call->count)];
    case CHOICE_outermost:
        return slot->kinds[is_generator_of(argument_of(call, 0), "notifies") ? KIND_idle : KIND_db];
    case CHOICE_blocking:
        return slot->kinds[is_blocking_command(argument_of(call, 0)) ? KIND_idle : KIND_db];
    case CHOICE_poll:
        return slot->kinds[kind_of_watched(call->owner)];
    case CHOICE_queue:
        return subject_of(call) == Py_False;
    default:
        return 0;
    }
}

/* What has to be added to the number of an intrinsic of several kinds. */
static __attribute__((noinline)) uint32_t chosen_kind(const struct call *call, const struct thread *thread)
{
    const struct slot *slot = call->slot;
    if (slot->choice == CHOICE_descriptor)
        return kind_of_traffic(slot, descriptor_known(call->descriptor), thread);
    if (slot->kinds[KIND_idle] && inside(thread, KIND_idle))
        return slot->kinds[KIND_idle];
    if (slot->kinds[KIND_db] && inside(thread, KIND_db)) /* how a driver in Python talks to its server */
        return slot->kinds[KIND_db];
    return busy_while_serving(slot, kind_by_choice(call), thread);
}
