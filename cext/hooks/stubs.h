/* The static pools of stubs, one for each signature of a C function that can be put in another's place.

   CPython hands a C function no hint of which definition it was called through, so each stub is a function of its own
   that knows its slot, and jumps to the slot's body with it. The bodies are the shims (timing/bodies.pxi). */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

#include "kinds.h"
#include "core/levels.h"
#include "core/recorder.h"

/* name, what a body takes after its slot, as declared, as passed on; what it gives; how many stubs.
   `pair` serves METH_NOARGS, METH_O and METH_VARARGS; `triple` METH_VARARGS | METH_KEYWORDS and tp_call; `vector` the
   vectorcall of a Python function. */
#define SIGNATURES(X) \
    X(pair, PyObject *, (PyObject *self, PyObject *argument), (self, argument)) \
    X(triple, PyObject *, (PyObject *self, PyObject *arguments, PyObject *keywords), (self, arguments, keywords)) \
    X(fast, PyObject *, (PyObject *self, PyObject *const *arguments, Py_ssize_t count), (self, arguments, count)) \
    X(fast_keywords, PyObject *, \
      (PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names), \
      (self, arguments, count, names)) \
    X(method, PyObject *, \
      (PyObject *self, PyTypeObject *type, PyObject *const *arguments, size_t count, PyObject *names), \
      (self, type, arguments, count, names)) \
    X(vector, PyObject *, \
      (PyObject *self, PyObject *const *arguments, size_t count, PyObject *names), \
      (self, arguments, count, names)) \
    X(unary, PyObject *, (PyObject *self), (self)) \
    X(initialise, int, (PyObject *self, PyObject *arguments, PyObject *keywords), (self, arguments, keywords)) \
    X(finish, void, (PyObject *self), (self))

enum { STUBS = 256 };

/* What is kept of a call besides its times. */
#define DETAILS(X) \
    X(statement,  "SQL without its literals") \
    X(descriptor, "what lies behind a descriptor, a raw file or a socket: a path, an address, a stream") \
    X(path,       "a path as it was given") \
    X(address,    "an address, as host and port or as a path") \
    X(host,       "host and port, given as two arguments") \
    X(command,    "the program that a command runs, without its arguments") \
    X(database,   "a database's path, without the parameters of a URI") \
    X(dsn,        "host and name of a database, of a connection string or of arguments by name") \
    X(server,     "the same, of a host and, as the fourth argument, a name, or of arguments by name") \
    X(tls,        "what lies behind the socket of an encrypted connection") \
    X(holder,     "the thread and the line that took a lock last") \
    X(word,       "the first word of a text: a command's name, never its values") \
    X(url,        "a URL without user, password, query and fragment") \
    X(request,    "a request's method and its URL: two arguments, or two attributes of one") \
    X(served,     "the method and the route, or the path, of what a WSGI environment or an ASGI scope tells") \
    X(type,       "the name of a class") \
    X(module,     "the name of a module that is imported") \
    X(name,       "what was said when it was marked")

/* What tells how much was moved. */
#define MOVES(X) \
    X(result,   "the result: a number, or the length of it or of its first part") \
    X(argument, "the length of the first argument") \
    X(frame,    "nothing; what curses shows may be another picture by its end") \
    X(row,      "one row, unless the result is None or there is none") \
    X(rows,     "as many rows as the result has") \
    X(cursor,   "nothing yet: rows are to be fetched from the result")

/* How one of several kinds is chosen. Whatever waits inside a call that is idle is idle too. */
#define CHOICES(X) \
    X(nested,     "the first kind, unless inside a call that is idle") \
    X(descriptor, "by what lies behind the descriptor") \
    X(receive,    "idle where a server waits for its client's next request") \
    X(select,     "by the descriptors in three lists; sleep where there are none") \
    X(poll,       "by the descriptors that were registered") \
    X(outermost,  "inside a call of a database it is passed through; idle where it waits for notifications") \
    X(blocking,   "idle where the first argument is a command that waits for what others put there") \
    X(connection, "passed through where a server's handlers take the requests of a connection one by one, as HTTP's do") \
    X(queue,      "the first kind, unless it is told not to wait")

/* What a call changes in what is known of descriptors and of children. */
#define EFFECTS(X) \
    X(open,     "the result is the descriptor of the path that is the call's detail") \
    X(make,     "the result, or what is in it, are new descriptors") \
    X(socket,   "a new socket, unless it is made for a descriptor that was there") \
    X(forget,   "what was known of the descriptor is so no more") \
    X(range,    "a range of descriptors means nothing any more") \
    X(connect,  "a client's socket") \
    X(listen,   "a server's socket") \
    X(accept,   "the result begins with the descriptor of a server's connection") \
    X(send,     "something was sent") \
    X(receive,  "something was received") \
    X(watch,    "a descriptor was registered to be waited for") \
    X(unwatch,  "it no longer is") \
    X(unwatch_all, "nothing is registered: with the result, or with the object where there is none") \
    X(fork,     "the result is a child, or begins with one and a new descriptor") \
    X(spawn,    "the result is a child that runs the program at the path") \
    X(search,   "the same; the program is looked for along PATH") \
    X(fork_exec, "the same; the first of several paths that can be run") \
    X(popen,    "where it fails, so did the child that it started") \
    X(exec,     "the process becomes another program") \
    X(shell,    "a shell is started, and waited for") \
    X(wait,     "the result begins with a child and how it ended") \
    X(waitid,   "the result tells a child and how it ended, in its own way") \
    X(serve,    "it waits for a request and answers it: the call is from the request's arrival on, if one arrives") \
    X(arrive,   "a request has arrived, for the call around it that waits for one; itself it is none") \
    X(route,    "by its end it is known what the request is that is served around it; itself it is no call")

/* How a call that starts a program passes an environment on, to which what a descendant needs is added. */
#define PASSES(X) \
    X(list,    "the sixth argument: a list of bytes, or None for the process's own") \
    X(mapping, "the third argument, or `env`: a mapping") \
    X(spawn,   "the same; from CPython 3.13 on it may be None for the process's own") \
    X(search,  "the same, and the program is looked for in PATH") \
    X(own,     "the process's own, for the time of the call") \
    X(shell,   "the process's own, from then on: it is a shell's, and others may run meanwhile")

/* What sort of lock is taken, and so how one sees whether it is free. */
#define LOCKS(X) \
    X(plain,     "a Lock") \
    X(recursive, "an RLock") \
    X(semaphore, "a semaphore of multiprocessing")

#define NUMBER_OF_DETAIL(name, meaning) DETAIL_##name,
#define NUMBER_OF_MOVE(name, meaning) MOVES_##name,
#define NUMBER_OF_CHOICE(name, meaning) CHOICE_##name,
#define NUMBER_OF_EFFECT(name, meaning) EFFECT_##name,
#define NUMBER_OF_PASSES(name, meaning) PASSES_##name,
#define NUMBER_OF_LOCK(name, meaning) LOCK_##name,
enum detail_kind { DETAIL_none, DETAILS(NUMBER_OF_DETAIL) };
enum moves { MOVES_none, MOVES(NUMBER_OF_MOVE) };
enum choice { CHOICE_none, CHOICES(NUMBER_OF_CHOICE) };
enum effect { EFFECT_none, EFFECTS(NUMBER_OF_EFFECT) };
enum passes { PASSES_none, PASSES(NUMBER_OF_PASSES) };
enum lock { LOCK_none, LOCKS(NUMBER_OF_LOCK) };

/* The words of each list, in the order of the numbers, ended by NULL. */
#define WORD_OF_KIND(name) #name,
#define WORD(name, meaning) #name,
static const char *const kind_words[] = {KINDS(WORD_OF_KIND) NULL};
static const char *const detail_words[] = {"", DETAILS(WORD) NULL};
static const char *const moves_words[] = {"", MOVES(WORD) NULL};
static const char *const choice_words[] = {"", CHOICES(WORD) NULL};
static const char *const effect_words[] = {"", EFFECTS(WORD) NULL};
static const char *const passes_words[] = {"", PASSES(WORD) NULL};
static const char *const lock_words[] = {"", LOCKS(WORD) NULL};
static const char *const level_words[] = {LEVELS(WORD_OF_LEVEL) NULL};

/* What waits is recorded from a time on, and counted below it: of C functions the time they took, of Python functions
   the time that they were not running. What fetches rows may be added to the event of a fetch before it. */
enum waits { WAITS_not, WAITS_wall, WAITS_off_cpu, WAITS_rows };

/* In the place of an argument's number: the object itself, or what the call gave. */
enum { SUBJECT_RESULT = 254, SUBJECT_OWNER = 255 };

/* What a stub knows. */
struct slot {
    void *body; /* the shim, or a hook of the tracer's own */
    void *real; /* the function in whose place the stub stands */
    void *ask;  /* of a semaphore: what tells whether it is free */
    PyObject *link; /* the versions that several libraries have of it, or NULL */
    PyObject *keyword;    /* the name of the argument that the detail is taken from, where it may be given by name; or NULL */
    PyObject *attributes; /* the ways to what of it is kept, a tuple of tuples of names; or NULL: itself */
    PyObject *route;      /* the ways, each of which may lead to what names it better once the call has ended; or NULL */
    uint32_t intrinsic;        /* its number for the first of its kinds */
    uint8_t numbers;           /* how many it has; 0 of what is no intrinsic */
    uint8_t kinds[KIND_COUNT]; /* for each kind: what is to be added to that number */
    uint8_t detail, subject;   /* subject: which argument the detail is taken from */
    uint8_t late;              /* the detail may be known only after the call */
    uint8_t moves, choice, effect, lock, passes;
    uint8_t waits; /* enum waits */
    uint8_t traffic; /* it reads or writes what lies behind a descriptor */
    uint8_t asks; /* it waits for somebody at the keyboard, where it is of the kind screen */
    uint8_t shape; /* of pair: how its argument is to be understood */
    uint8_t levels[KIND_COUNT]; /* enum level, by what is added to its number */
    uint8_t lowered; /* not all of them are LEVEL_time */
    uint8_t through; /* nothing but what is recorded needs to know of its calls */
    uint8_t watched; /* enum watched */
    uint8_t sampled; /* its calls are transactions of which one in so many is kept */
    uint8_t taken;
};

/* What the filter wants to know of the calls of a slot before all else: nothing, from where they are made, whether inside
   a call of a database, or nothing more, since all are left out. */
enum watched { WATCHED_not, WATCHED_look, WATCHED_outside_db, WATCHED_closed };

/* Is this call left out by the filter, and nothing of it to be known? (hooks/filtering.h) */
static bool is_left_out_at_once(const struct slot *slot);

/* A call of which nothing is recorded goes straight on. */
static inline bool goes_straight_on(const struct slot *slot)
{
    uint64_t said = said_from_outside();
    if (LIKELY(said == recorder.heeded))
        return UNLIKELY(slot->watched) && is_left_out_at_once(slot);
    if (!(uint32_t)said || !slot->through)
        return false;
    recorder.heeded = LOOKED_AWAY;
    return true;
}

/* Is it one of the many that ask the same of a descriptor: what lies behind it, of which kind it is? */
static inline bool is_traffic(const struct slot *slot)
{
    bool asks = slot->detail == DETAIL_descriptor && slot->choice == CHOICE_descriptor;
    return asks && (slot->effect == EFFECT_none || slot->effect == EFFECT_send || slot->effect == EFFECT_receive);
}

#define STRIP(...) __VA_ARGS__
#define TYPE_OF_FUNCTION(name, result, declared, passed) \
    typedef result (*name##_function) declared; \
    typedef result (*name##_body)(struct slot *, STRIP declared);
SIGNATURES(TYPE_OF_FUNCTION)

#define STUB(index, name, result, declared, passed) \
    static result stub_##name##_##index declared \
    { \
        struct slot *slot = &slots_##name[0x##index]; \
        if (UNLIKELY(goes_straight_on(slot))) \
            return ((name##_function)slot->real) passed; \
        return ((name##_body)slot->body)(slot, STRIP passed); \
    }
#define REFERENCE(index, name, result, declared, passed) (void *)stub_##name##_##index,

#define SIXTEEN(X, digit, ...) \
    X(digit##0, __VA_ARGS__) X(digit##1, __VA_ARGS__) X(digit##2, __VA_ARGS__) X(digit##3, __VA_ARGS__) \
    X(digit##4, __VA_ARGS__) X(digit##5, __VA_ARGS__) X(digit##6, __VA_ARGS__) X(digit##7, __VA_ARGS__) \
    X(digit##8, __VA_ARGS__) X(digit##9, __VA_ARGS__) X(digit##a, __VA_ARGS__) X(digit##b, __VA_ARGS__) \
    X(digit##c, __VA_ARGS__) X(digit##d, __VA_ARGS__) X(digit##e, __VA_ARGS__) X(digit##f, __VA_ARGS__)
#define EACH_STUB(X, ...) \
    SIXTEEN(X, 0, __VA_ARGS__) SIXTEEN(X, 1, __VA_ARGS__) SIXTEEN(X, 2, __VA_ARGS__) SIXTEEN(X, 3, __VA_ARGS__) \
    SIXTEEN(X, 4, __VA_ARGS__) SIXTEEN(X, 5, __VA_ARGS__) SIXTEEN(X, 6, __VA_ARGS__) SIXTEEN(X, 7, __VA_ARGS__) \
    SIXTEEN(X, 8, __VA_ARGS__) SIXTEEN(X, 9, __VA_ARGS__) SIXTEEN(X, a, __VA_ARGS__) SIXTEEN(X, b, __VA_ARGS__) \
    SIXTEEN(X, c, __VA_ARGS__) SIXTEEN(X, d, __VA_ARGS__) SIXTEEN(X, e, __VA_ARGS__) SIXTEEN(X, f, __VA_ARGS__)

#define POOL_OF_STUBS(name, result, declared, passed) \
    static struct slot slots_##name[STUBS]; \
    EACH_STUB(STUB, name, result, declared, passed) \
    static void *const stubs_##name[STUBS] = {EACH_STUB(REFERENCE, name, result, declared, passed)};
SIGNATURES(POOL_OF_STUBS)

#define NUMBER_OF_SIGNATURE(name, ...) SIGNATURE_##name,
enum signature { SIGNATURES(NUMBER_OF_SIGNATURE) SIGNATURE_COUNT };

#define ENTRY_OF_POOL(name, ...) [SIGNATURE_##name] = {slots_##name, stubs_##name},
static const struct stub_pool {
    struct slot *slots;
    void *const *stubs;
} stub_pools[SIGNATURE_COUNT] = {SIGNATURES(ENTRY_OF_POOL)};

/* A slot that nobody has, or NULL when the pool is full. */
static struct slot *slot_take(enum signature signature)
{
    for (unsigned index = 0; index < STUBS; index++) {
        struct slot *slot = &stub_pools[signature].slots[index];
        if (!slot->taken) {
            slot->taken = 1;
            return slot;
        }
    }
    return NULL;
}

static void *slot_stub(enum signature signature, const struct slot *slot)
{
    return stub_pools[signature].stubs[slot - stub_pools[signature].slots];
}

/* Is the slot's intrinsic one whose calls recording itself has to see, whatever their level? */
static inline bool is_always_timed(const struct slot *slot)
{
    return slot->effect >= EFFECT_fork && slot->effect < EFFECT_serve;
}

static bool slot_lower(struct slot *slot, uint32_t number, enum level level)
{
    uint32_t added = number - slot->intrinsic;
    if (added >= slot->numbers || is_always_timed(slot) || slot->sampled)
        return false;
    slot->levels[added] = (uint8_t)level;
    slot->lowered = 1;
    return true;
}

/* Have the calls of that number be at `level`, which is lower than before; false where there are no such, or where
   recording itself needs to know of them. */
static bool slots_lower(uint32_t number, enum level level)
{
    bool found = false;
    for (unsigned signature = 0; signature < SIGNATURE_COUNT; signature++)
        for (unsigned index = 0; index < STUBS; index++)
            found |= slot_lower(&stub_pools[signature].slots[index], number, level);
    return found;
}

/* Another filter holds. */
static void slot_watch(struct slot *slot);
static void slots_watch(void)
{
    for (unsigned signature = 0; signature < SIGNATURE_COUNT; signature++)
        for (unsigned index = 0; index < STUBS; index++)
            slot_watch(&stub_pools[signature].slots[index]);
}

/* Is this function one of the stubs? */
static int is_stub(const void *function)
{
    for (unsigned signature = 0; signature < SIGNATURE_COUNT; signature++)
        for (unsigned index = 0; index < STUBS; index++)
            if (stub_pools[signature].stubs[index] == function)
                return 1;
    return 0;
}
