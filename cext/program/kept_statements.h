/* What is known of the statements that connections, results and prepared statements are about, by their addresses. It is forgotten
   when they end: others may be at the same address afterwards. The oldest of many gives way. */
#pragma once

#include <stdint.h>

/* The number of `detail`, from now on; 0 forgets. Nothing is kept of NULL. */
void statement_keep(const void *of, uint32_t detail);

/* 0: not known. */
uint32_t statement_kept(const void *of);

/* The same of a prepared statement that has a name on a connection. NULL, which no library takes, has none. */
void statement_keep_named(const void *connection, const char *name, uint32_t detail);
uint32_t statement_kept_named(const void *connection, const char *name);

/* The connection ends, or begins again, and with it the names on it. */
void statements_forget(const void *connection);
