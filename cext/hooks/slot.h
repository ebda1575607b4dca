/* What a stub knows of its intrinsic: how a call of it is recorded. The lists are the vocabulary in which libraries
   describe intrinsics. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kinds.h"
#include "core/levels.h"

typedef struct _object PyObject; /* as Python has it; programs without Python have slots, too */

/* What is kept of a call besides its times. */
#define DETAILS(X) \
    X(statement,  "SQL without its literals; what one dialect has otherwise than another is left out") \
    X(sqlite_statement,     "the same, of SQLite") \
    X(postgresql_statement, "the same, of PostgreSQL") \
    X(mysql_statement,      "the same, of MySQL and MariaDB") \
    X(oracle_statement,     "the same, of Oracle") \
    X(descriptor, "what lies behind a descriptor, a raw file or a socket: a path, an address, a stream") \
    X(flock,      "flock's operation, its second argument, and what lies behind a descriptor") \
    X(lockf,      "the same, of the commands of lockf") \
    X(fcntl,      "the same, where a command of fcntl is about a lock; else what lies behind the descriptor") \
    X(path,       "a path as it was given") \
    X(destination, "the same, of a call that moves or links to it; one that failed may not have read it") \
    X(address,    "an address, as host and port or as a path") \
    X(host,       "host and port, given as two arguments") \
    X(command,    "the program that a command runs, without its arguments") \
    X(program,    "a program's path, or the file that is run") \
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
    X(outermost,  "RELEASE SAVEPOINT if an attribute is false: a block that ends within another transaction") \
    X(nested,     "RELEASE SAVEPOINT if an attribute is true: a block that ends within another transaction") \
    X(topic,      "the topic of a message of Kafka, or the one that all of a list have") \
    X(name,       "what was said when it was marked")

/* What tells how much was moved. */
#define MOVES(X) \
    X(result,   "the result: a number, or the length of it or of its first part") \
    X(argument, "the length of the first argument") \
    X(value,    "the length of the second argument, or of the one called `value`") \
    X(messages, "the lengths of the values of a message of Kafka, or of a list of them") \
    X(frame,    "nothing; what curses shows may be another picture by its end") \
    X(row,      "one row, unless the result is None or there is none") \
    X(rows,     "as many rows as the result has") \
    X(cursor,   "nothing yet: rows are to be fetched from the result")

/* How one of several kinds is chosen. Any wait inside an idle call is idle, too. */
#define CHOICES(X) \
    X(nested,     "the first kind, unless inside a call that is idle") \
    X(descriptor, "by what lies behind the descriptor") \
    X(lock,       "sync where a command of fcntl is about a lock; else by what lies behind the descriptor") \
    X(receive,    "idle where a server waits for its client's next request") \
    X(select,     "by the descriptors in three lists; sleep where there are none") \
    X(poll,       "by the descriptors that were registered") \
    X(outermost,  "inside a call of a database it is passed through; idle where it waits for notifications") \
    X(layer,      "inside another call of an encrypted connection it is passed through") \
    X(blocking,   "idle where the first argument is a command that waits for what others put there") \
    X(connection, "passed through where a server's handlers take the requests of a connection one by one, as HTTP's do") \
    X(queue,      "the first kind, unless it is told not to wait, or like `stock`") \
    X(child,      "the first kind where it waits for one child by its number; idle where for whichever ends first") \
    X(deliveries, "idle where a client of RabbitMQ waits for deliveries; else passed through") \
    X(pool,       "process; sync where what `attribute` leads to is a pool of threads") \
    X(worker,     "the first kind; idle where a thread waits that only does what it is given; net in a call that is") \
    X(stock,      "idle; sync where a module of pools, of an installed package, waits for what others have taken")

/* What a call changes in the known descriptors and children. */
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
    X(one_way,  "nothing answers what was sent on the connection that `attribute` leads to") \
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
    X(route,    "by its end it is known what the request is that is served around it; itself it is no call") \
    X(span,     "another tracer's span may be active from its end on; itself it is no call") \
    X(carry,    "what it makes, or is given, carries the transaction in progress to other threads; itself it is no call") \
    X(answer,   "what it makes is awaited, and so is another's answer meanwhile; itself it is no call") \
    X(continue, "it runs a function, which may continue a transaction of another thread")

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

extern const char *const kind_words[];
extern const char *const detail_words[];
extern const char *const moves_words[];
extern const char *const choice_words[];
extern const char *const effect_words[];
extern const char *const passes_words[];
extern const char *const lock_words[];
extern const char *const level_words[];

/* What waits is recorded from a time on, and counted below it: of C functions the time they took, of Python functions
   the time that they were not running. What fetches rows may be added to the event of a fetch before it. */
enum waits { WAITS_not, WAITS_wall, WAITS_off_cpu, WAITS_rows };

/* Whether the detail is a path as it was given. */
static inline bool is_path(enum detail_kind detail)
{
    return detail == DETAIL_path || detail == DETAIL_destination;
}

/* In the place of an argument's number: the object itself, or what the call gave. */
enum { SUBJECT_RESULT = 254, SUBJECT_OWNER = 255, CALLER_NOT = SUBJECT_RESULT };

/* Of the request that a call serves: its end may show a better name; its trace may be known, as that of any transaction
   may from another tracer. */
enum request { REQUEST_not, REQUEST_named = 1, REQUEST_traced = 2 };

/* What a stub knows. */
struct slot {
    void *body; /* the shim, or a hook of the tracer's own */
    void *real; /* the function that the stub replaces */
    void *ask;  /* of a semaphore: what tells whether it is free */
    PyObject *link; /* the versions that several libraries have of it, or NULL */
    PyObject *keyword;    /* the name of the argument that the detail is taken from, where it may be given by name; or NULL */
    PyObject *attributes; /* the paths to what is kept, a tuple of tuples of names; or NULL: the object itself */
    PyObject *headers;    /* the path from what `caller` names to the headers of its request; NULL: that itself */
    PyObject *route;      /* the ways, each of which may lead to what names it better once the call has ended; or NULL */
    uint32_t intrinsic;        /* its number for the first of its kinds */
    uint8_t numbers;           /* how many numbers it has; 0 if it is not an intrinsic */
    uint8_t kinds[KIND_COUNT]; /* for each kind: what to add to that number */
    uint8_t detail, subject;   /* subject: which argument the detail is taken from */
    uint8_t late;              /* the detail may be known only after the call */
    uint8_t caller;            /* which argument has the headers of a request, or CALLER_NOT */
    uint8_t request;           /* enum request */
    uint8_t moves, choice, effect, lock, passes;
    uint8_t waits; /* enum waits */
    uint8_t traffic; /* it reads or writes through a descriptor */
    uint8_t asks; /* it waits for a user at the keyboard, if it is of the kind screen */
    uint8_t shape; /* of pair: how its argument is interpreted */
    uint8_t through; /* only recorded calls need to know of its calls */
    uint8_t levels[KIND_COUNT]; /* enum level, by what is added to its number */
    uint8_t lowered; /* not all of them are LEVEL_time, or begin_checked reads headers */
    uint8_t watched; /* enum watched */
    uint8_t sampled; /* its calls are transactions, one in N of which is kept */
    uint8_t taken;
};
/* Fields that change while threads call share no word with constant fields, which compilers read a word at a time. */
_Static_assert(offsetof(struct slot, levels) % sizeof(uint64_t) == 0, "levels begin a word");

/* What the filter needs to know about the calls of a slot first of all: nothing; their sites; whether they are
   inside a database call; or nothing more, because all are excluded. For an unready slot the intrinsic is not known
   yet: its calls pass. */
enum watched { WATCHED_not, WATCHED_look, WATCHED_outside_db, WATCHED_closed, WATCHED_unfit };

static inline enum watched slot_watched(const struct slot *slot)
{
    return (enum watched)__atomic_load_n(&slot->watched, __ATOMIC_ACQUIRE);
}

/* The slot is complete: other threads may be calling already. */
static inline void slot_is_fit(struct slot *slot)
{
    __atomic_store_n(&slot->watched, WATCHED_not, __ATOMIC_RELEASE);
}

/* Whether it is one of the many with the same question: what a descriptor refers to, and of which kind that is. */
bool is_traffic(const struct slot *slot);

/* The governor lowers it while threads call. */
static inline enum level slot_level(const struct slot *slot, uint32_t added)
{
    return (enum level)__atomic_load_n(&slot->levels[added], __ATOMIC_RELAXED);
}

static inline uint8_t slot_lowered(const struct slot *slot)
{
    return __atomic_load_n(&slot->lowered, __ATOMIC_RELAXED);
}

/* Whether recording itself must see the slot's calls, whatever their level. */
static inline bool is_always_timed(const struct slot *slot)
{
    return slot->effect >= EFFECT_fork && slot->effect < EFFECT_serve;
}

bool slot_lower(struct slot *slot, uint32_t number, enum level level);
