/* The program that this library was loaded into, as native calls know it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "native/native_host.h"

/* Have one more function exchanged; and each of the lists of them. */
void program_exchange(struct native_exchange exchange);
void program_exchange_children(void);
void program_exchange_threads(void);
void program_exchange_databases(void);
void program_exchange_messages(void);

/* Where the program itself lies, and the site of its calls. Before the first call. */
void program_know_itself(const char *path);

/* The stack of a call that the program itself makes; 0 before its site is known. */
uint32_t program_stack(void);
