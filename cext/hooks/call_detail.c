#include "hooks/call_detail.h"

#include "kinds.h"
#include "core/visible.h"
#include "cpython/attributes.h"
#include "cpython/ownership.h"
#include "hooks/address_detail.h"
#include "hooks/command_detail.h"
#include "hooks/database_server.h"
#include "hooks/descriptors.h"
#include "hooks/file_lock_detail.h"
#include "hooks/kafka_messages.h"
#include "hooks/lock_holders.h"
#include "hooks/object_descriptor.h"
#include "hooks/path_detail.h"
#include "hooks/route_detail.h"
#include "hooks/statement_detail.h"
#include "hooks/url_detail.h"

static uint32_t detail_of_subject(const struct call *call, PyObject *subject)
{
    switch ((enum detail_kind)call->slot->detail) {
    case DETAIL_statement:
    case DETAIL_sqlite_statement:
    case DETAIL_postgresql_statement:
    case DETAIL_mysql_statement:
    case DETAIL_oracle_statement:
        return statement_detail(subject, dialect_of(call->slot->detail));
    case DETAIL_descriptor:
        return descriptor_detail(subject);
    case DETAIL_flock:
    case DETAIL_lockf:
    case DETAIL_fcntl:
        return file_lock_detail(call, descriptor_of(subject));
    case DETAIL_path:
    case DETAIL_destination:
        return path_detail(subject);
    case DETAIL_address:
        return address_detail(subject);
    case DETAIL_host:
        return host_detail(subject, argument_of(call, call->slot->subject + 1));
    case DETAIL_command:
        return command_detail(subject);
    case DETAIL_program:
        return program_detail(subject);
    case DETAIL_database:
        return database_detail(subject);
    case DETAIL_tls:
        return detail_of_descriptor(descriptor_of_tls(subject));
    case DETAIL_holder: /* with parallel threads, its new holder may not be known yet, only at the end */
        return IS_FREE_THREADED ? 0 : holder_detail(subject, call->slot->lock == LOCK_plain && !is_free_plain(subject));
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
    case DETAIL_outermost:
        return subject == Py_False ? intern_literal("RELEASE SAVEPOINT") : 0;
    case DETAIL_nested:
        return subject == Py_True ? intern_literal("RELEASE SAVEPOINT") : 0;
    case DETAIL_topic:
        return topic_detail(subject);
    case DETAIL_name:
        return intern_text(call->slot->keyword);
    case DETAIL_none:
        break;
    }
    return 0;
}

/* Of what its attributes are: the last of them, behind the first. */
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

uint32_t detail_of_route(const struct slot *slot, PyObject *subject)
{
    PyObject *ways = slot->attributes;
    if (slot->detail == DETAIL_served) {
        PyObject *told = ways ? attribute_at(subject, PyTuple_GET_ITEM(ways, 0)) : Py_NewRef(subject);
        uint32_t number = told ? told_route_detail(told) : 0;
        Py_XDECREF(told);
        return number;
    }
    bool is_name = slot->detail == DETAIL_word;
    PyObject *method = ways && !is_name ? attribute_at(subject, PyTuple_GET_ITEM(ways, 0)) : NULL;
    bool has_mount = method && PyTuple_GET_SIZE(ways) > 2;
    PyObject *mount = has_mount ? attribute_at(subject, PyTuple_GET_ITEM(ways, 1)) : NULL;
    uint32_t number = kept_route_detail(subject, slot->route, method, mount, is_name);
    Py_XDECREF(mount);
    Py_XDECREF(method);
    return number;
}

static uint32_t detail_of_what(const struct call *call, PyObject *subject)
{
    return UNLIKELY(call->slot->attributes) ? detail_of_attributes(call, subject) : detail_of_subject(call, subject);
}

/* Whether arguments given by name show it, whatever else was given. */
static bool is_told_by_names(const struct slot *slot)
{
    return slot->subject != SUBJECT_RESULT && (slot->detail == DETAIL_dsn || slot->detail == DETAIL_server);
}

uint32_t detail_of(const struct call *call)
{
    PyObject *subject = subject_of(call);
    if (UNLIKELY(!subject && !is_told_by_names(call->slot)))
        return 0;
    return detail_of_what(call, subject);
}

bool is_detail_late(const struct slot *slot)
{
    if (slot->subject == SUBJECT_RESULT || is_statement(slot->detail))
        return true;
    return is_path(slot->detail) || slot->detail == DETAIL_holder;
}

uint32_t late_detail(const struct call *call, PyObject *result)
{
    PyObject *subject = subject_of(call);
    uint32_t number = 0;
    struct raised raised = raised_keep(); /* a look-up clears the current exception */
    if (call->slot->subject == SUBJECT_RESULT)
        number = result ? detail_of_what(call, result) : 0;
    else if (is_path(call->slot->detail) && subject)
        number = kept_path(subject);
    else if (call->slot->detail == DETAIL_holder && subject) /* who got it first, meanwhile */
        number = other_holder_detail(subject);
    else if (is_statement(call->slot->detail) && call->owner)
        number = kept_statement(call->owner);
    raised_restore(raised);
    return number;
}
