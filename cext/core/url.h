/* What is kept of URLs and hosts: neither users nor passwords, parameters, fragments, nor the contents of `data:`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/visible.h"

/* Where what is kept is written; what exceeds the room is left out. */
struct text {
    char *bytes;
    size_t room, length;
};

VISIBLE void text_append(struct text *text, const char *bytes, size_t length);

/* Of a URL, or of a path that may contain another URL. */
VISIBLE void url_append(struct text *text, const char *bytes, size_t length);

/* Of what a URL has before its path. */
VISIBLE void authority_append(struct text *text, const char *bytes, size_t length);

/* A host's name in a text, which may be a URL or a connection string by mistake; `bytes` becomes its length. */
VISIBLE const char *host_within(const char *text, size_t *bytes);

/* Does it look like one, or like user:password@host? pathlib makes `https:/host` of `https://host`. */
VISIBLE bool may_be_url(const char *path, size_t bytes);
