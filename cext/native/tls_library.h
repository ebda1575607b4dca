/* The libraries of encrypted connections, whose calls are intrinsics (native/native_calls.h): in which object each is, and what it
   tells of a connection. Of two of a kind, one is recorded. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/loaded_object.h"

/* Is it the object whose functions of that name are recorded? It becomes so if there is none. */
bool tls_is_of(const struct loaded_object *object, bool is_openssl);

/* The object is no longer there. */
void tls_forget(bool is_openssl);

/* The descriptor of a connection; -1: none is known. */
int number_of_openssl(const void *connection);
int number_of_gnutls(void *connection);

/* The name of the error that a call ended with; 0: none, or that there is nothing yet. errno stays as it is. */
uint32_t failed_openssl(const void *connection, int result);
uint32_t failed_gnutls(int64_t result);
