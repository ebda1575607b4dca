/* A data collector in C: what names, to interpose, what a program was about when one of its calls ended.

   A shared library that exports

       const struct interpose_collector interpose_collector = INTERPOSE_COLLECTOR(.name = "orders", .collect = collect);

   is one. `collect` is called at the end of each recorded call, on the thread that called, with the interpreter's lock,
   after interpose has identified the call by itself. It may change what INTERPOSE_AREA_CLAIMS lists and nothing else; it
   must neither wait nor let go of the interpreter's lock. docs/collectors.md has the rules.

   This header needs nothing else of interpose, nor Python's headers. A later version only adds fields, at the end:
   `area_bytes` tells how much of the area is there. */
#pragma once

#include <stdint.h>

#define INTERPOSE_COLLECTOR_VERSION 1
#define INTERPOSE_COLLECTOR_EYE_CATCHER "INTERPOSE COLLECTOR"
#define INTERPOSE_COLLECTOR_SYMBOL "interpose_collector"

enum {
    INTERPOSE_EYE_CATCHER_BYTES = 24,
    INTERPOSE_SCRATCH_BYTES = 256,
    INTERPOSE_IDENTIFIER_BYTES = 64,
    INTERPOSE_NAME_BYTES = 128,  /* a longer name is cut */
    INTERPOSE_SECTIONS = 25,     /* of one collector */
    INTERPOSE_FORCED_SIZE = 0x7fffffff, /* with a base of 0: a pseudo-section is claimed, wherever the call was made */
};

/* What a collector is told. Changes have no effect. */
#define INTERPOSE_AREA_TOLD(X) \
    X(uint32_t,     version,    , "version of the area: INTERPOSE_COLLECTOR_VERSION") \
    X(uint32_t,     area_bytes, , "how much of the area is there") \
    X(uint32_t,     thread,     , "the kernel's number of the calling thread") \
    X(uint32_t,     task,       , "asynchronous task, or 0") \
    X(const void *, code,       , "the calling code object; NULL where no Python code called, or it is not known") \
    X(const char *, file,       , "the file name that the code has, or NULL") \
    X(const char *, function,   , "the qualified name of the code's function, or NULL") \
    X(uint64_t,     line,       , "line of the call, 0 where unknown") \
    X(uint64_t,     address,    , "what a module must contain: the line, in lines of the code's file; where no Python " \
                                  "code called, the address of the native function that was called") \
    X(uint64_t,     wall_ns,    , "wall time of the call") \
    X(uint64_t,     cpu_ns,     , "CPU time of the calling thread in the same")

/* What a collector may change. It is given what is known so far: by interpose, then by the collector before it. */
#define INTERPOSE_AREA_CLAIMS(X) \
    X(const char *, module,      , "name of the module; NULL: not identified") \
    X(uint64_t,     base,        , "where the module begins: a line, or an address") \
    X(uint64_t,     size,        , "how many lines or bytes it has") \
    X(const char *, section,     , "name of the procedure in it, or NULL: the function's") \
    X(uint64_t,     statement,   , "number of the statement or line in it, or 0: the line of the call") \
    X(const char *, transaction, , "name of the transaction that a collector gave before, for it stays; NULL clears it") \
    X(void *,       work,        , "the collector's own: stays as it is from call to call; NULL at first") \
    X(char,         identifier,  [INTERPOSE_IDENTIFIER_BYTES], "text for the session data; empty at each call") \
    X(char,         scratch,     [INTERPOSE_SCRATCH_BYTES],    "room to make names in; what is in it does not stay")

#define INTERPOSE_AREA_FIELD(type, name, dimension, meaning) type name dimension;

struct interpose_area {
    INTERPOSE_AREA_TOLD(INTERPOSE_AREA_FIELD)
    INTERPOSE_AREA_CLAIMS(INTERPOSE_AREA_FIELD)
};

/* Modules whose names begin with `prefix` are reported as section `.name` of the module `.SYSTEM`. */
struct interpose_section {
    const char *name;
    const char *prefix;
};

/* When a collector is called. */
enum interpose_per {
    INTERPOSE_PER_EVENT,       /* at the end of each recorded call */
    INTERPOSE_PER_TRANSACTION, /* at the end of those that are, begin or end a transaction */
    INTERPOSE_PER_SITE,        /* once for each place in the code; what it claims is kept for it */
};

struct interpose_collector {
    char eye_catcher[INTERPOSE_EYE_CATCHER_BYTES];
    uint32_t version;
    uint32_t area_bytes; /* of the area that it was compiled for */
    uint32_t per;        /* enum interpose_per */
    uint32_t spare;
    const char *name;
    void (*collect)(struct interpose_area *area);
    const char *const *programs;             /* patterns with `*`, ended by NULL; NULL: all programs */
    const struct interpose_section *sections; /* ended by one without a name; NULL: none */
};

/* Its name and its function, at least: INTERPOSE_COLLECTOR(.name = "orders", .collect = collect). */
#define INTERPOSE_COLLECTOR(...) \
    { \
        .eye_catcher = INTERPOSE_COLLECTOR_EYE_CATCHER, .version = INTERPOSE_COLLECTOR_VERSION, \
        .area_bytes = sizeof(struct interpose_area), __VA_ARGS__ \
    }
