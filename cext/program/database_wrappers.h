/* What the wrappers of database clients are made of: what is said of the call, the real function, and how it ended. They are
   exchanged in program/program_databases.c. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program/database_errors.h"
#include "program/kept_statements.h"
#include "program/program_databases.h"

typedef const char *text;

#define BEGIN(name, subject) \
    native_begin(&call, &databases[DATABASE_##name], (intptr_t)(subject), __builtin_return_address(0), \
                 (uintptr_t)__builtin_frame_address(0))

/* A library calls its own functions: what the call around this one is about is kept by that. */
static inline bool is_part_of_another(bool begun)
{
    return !begun && current_thread && current_thread->outermost.call;
}

/* `after` comes before the call is recorded, where it is; `keep` in any other case, too, unless it is part of another. What
   `passes` takes none of a database's time. */
#define WRAPPER(...) WRAPPER_UNLESS(false, __VA_ARGS__)
#define WRAPPER_UNLESS(passes, name, returns, parameters, arguments, subject, after, keep, moved, error) \
    static returns program_##name parameters \
    { \
        typedef returns type parameters; \
        if (passes) \
            return ((type *)databases[DATABASE_##name].real)arguments; \
        struct native_call call; \
        bool begun = BEGIN(name, subject); \
        returns result = ((type *)databases[DATABASE_##name].real)arguments; \
        int saved = errno; \
        if (begun) { \
            after; \
            call.failed = call.span.thread ? (error) : 0; \
            native_end(&call, (moved), 0); \
        } \
        if (!is_part_of_another(begun)) { \
            keep; \
        } \
        errno = saved; \
        return result; \
    }

/* A call about no statement: its subject is a text, or NULL. */
#define PLAIN(name, returns, parameters, arguments, text, moved, error) \
    WRAPPER(name, returns, parameters, arguments, text, (void)0, (void)0, moved, error)

#define STATEMENT ((struct native_statement *)call.subject)
#define DETAIL (begun ? STATEMENT->detail : 0)

/* A call with a statement of so many bytes; `keep` keeps its DETAIL for later ones. */
#define WITH_STATEMENT(name, returns, parameters, arguments, text, length, keep, error) \
    WRAPPER(name, returns, parameters, arguments, (&(struct native_statement){text, 0, 0}), STATEMENT->bytes = (length), \
            keep, 0, error)

/* A call about the statement that was kept of something. */
#define ABOUT_STATEMENT(name, returns, parameters, arguments, of, keep, moved, error) \
    WRAPPER(name, returns, parameters, arguments, (&(struct native_statement){NULL, 0, statement_kept(of)}), (void)0, keep, \
            moved, error)

/* A call about a prepared statement that has a name; only one that went well has read the name. */
#define ABOUT_NAMED(name, returns, parameters, arguments, on, called, keep, error) \
    WRAPPER(name, returns, parameters, arguments, (&(struct native_statement){NULL, 0, 0}), \
            STATEMENT->detail = result ? statement_kept_named(on, called) : 0, keep, 0, error)

/* What ends something: it is not recorded, but what was kept is forgotten, before another one can have the address. */
#define FORGETTING(name, returns, of, forget) \
    static void *real_##name; \
    static returns program_##name(void *of) \
    { \
        forget; \
        return ((returns(*)(void *))real_##name)(of); \
    }
