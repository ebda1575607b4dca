/* The code objects of a sampled process: their names, and the line of an instruction. They are read once, and again
   if another code object has taken the address. */
#pragma once

#include <stdbool.h>

#include "core/interpreter_layout.h"
#include "sampler/remote.h"
#include "sampler/tables.h"

enum { CODE_BYTES_AT_MOST = 512 };

struct code; /* a single one */

struct codes {
    struct code *known;
    uint32_t count, room;
    struct numbers by_address, sites; /* sites: of an instruction of one */
};

struct sampled_process;

/* The site of the instruction at `place` in the code object at `address`, of which `head` was read just now. 0 if that is
   no code object, or has no such instruction, as when it is read in the middle of a change; NO_SITE where it is code that the
   interpreter has for itself, of no file of its own. */
#define NO_SITE UINT32_MAX
uint32_t codes_site(struct sampled_process *process, uint64_t address, const void *head, uint64_t place);

/* Whether `address` is the code object of a plain function that has an instruction at `place`. Overwritten memory fails this
   test, and so do generators, which keep their frames elsewhere. The code object is read again if it is unknown or does not fit. */
bool codes_has(struct sampled_process *process, uint64_t address, uint64_t place);

/* As codes_has, but true only for the code object of a generator or a coroutine. */
bool codes_has_generator(struct sampled_process *process, uint64_t address, uint64_t place);

/* Look at the code object again, by its `head` if that was read just now (else NULL). True if another one has taken the address
   of the known one. */
bool codes_again(struct sampled_process *process, uint64_t address, const void *head);

/* How many variables and values on its stack a frame of a known code object has room for; 0 if unknown. */
uint32_t codes_room(const struct codes *codes, uint64_t address);

/* What the function of a code object is called that `codes_site` was asked for, a number in strings, or 0. */
uint32_t codes_function(const struct codes *codes, uint64_t address);

/* A text of the process as UTF-8, cut where it is long. Returns its length, 0 if that is no text. */
enum { TEXT_CHARACTERS = 1024, TEXT_BYTES = 4 * TEXT_CHARACTERS };
size_t codes_text(const struct sampled_process *process, uint64_t address, char into[TEXT_BYTES]);

void codes_forget(struct codes *codes);
