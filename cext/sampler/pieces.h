/* Memory of another process that one call reads, in groups, one after the other. Within a group, pieces close to each other are
   read as one: the kernel takes longer to find a page than to copy it. */
#pragma once

#include "sampler/remote.h"

enum { WANTED_AT_MOST = 64, JOINED_AT_MOST = 12, JOINED_BYTES = 4096 };

struct pieces {
    struct remote_piece wanted[WANTED_AT_MOST], read[PIECES_AT_MOST];
    unsigned read_with[WANTED_AT_MOST]; /* by wanted piece: the piece of the call that has it */
    unsigned count, closed, reads, joined;
    char memory[JOINED_AT_MOST][JOINED_BYTES]; /* of those that are read as one */
};

void pieces_begin(struct pieces *pieces);

/* Into the open group. A piece with an impossible address, or beyond WANTED_AT_MOST, is not read: it is filled with zeros. */
void pieces_add(struct pieces *pieces, uint64_t address, void *into, size_t bytes);

/* Close the open group: what is added from now on is read later. Returns how many pieces the call has so far. */
unsigned pieces_close(struct pieces *pieces);

/* Returns how many pieces of the call, from the first on, were read whole; what they hold is where it was wanted. `is_urgent`
   halves the time between the first and the last piece. The call takes longer, and slows down threads that write there. */
unsigned pieces_read(pid_t process, struct pieces *pieces, bool is_urgent);
