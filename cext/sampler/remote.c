#define _GNU_SOURCE
#include "sampler/remote.h"

#include <string.h>
#include <sys/uio.h>

unsigned remote_read_pieces(pid_t process, const struct remote_piece *pieces, unsigned count)
{
    struct iovec here[PIECES_AT_MOST] = {{0}}, there[PIECES_AT_MOST] = {{0}};
    unsigned whole = 0;
    if (count > PIECES_AT_MOST)
        return 0;
    for (unsigned index = 0; index < count; index++) {
        here[index] = (struct iovec){pieces[index].into, pieces[index].bytes};
        there[index] = (struct iovec){(void *)(uintptr_t)pieces[index].address, pieces[index].bytes};
    }
    ssize_t left = process_vm_readv(process, here, count, there, count, 0);
    while (whole < count && left >= (ssize_t)pieces[whole].bytes)
        left -= (ssize_t)pieces[whole++].bytes;
    return whole;
}

bool remote_read(pid_t process, uint64_t address, void *into, size_t bytes)
{
    struct remote_piece piece = {address, into, bytes};
    return address && remote_read_pieces(process, &piece, 1) == 1;
}

uint64_t word_at(const void *from, size_t bytes, uint64_t offset)
{
    uint64_t word = 0;
    if (bytes >= sizeof word && offset <= bytes - sizeof word)
        memcpy(&word, (const char *)from + offset, sizeof word);
    return word;
}

uint32_t half_word_at(const void *from, size_t bytes, uint64_t offset)
{
    uint32_t word = 0;
    if (bytes >= sizeof word && offset <= bytes - sizeof word)
        memcpy(&word, (const char *)from + offset, sizeof word);
    return word;
}
