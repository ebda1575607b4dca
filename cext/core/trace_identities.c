#include "core/trace_identities.h"

uint64_t identity_seed(uint32_t pid, uint64_t start_ns, uint64_t time_ns)
{
    return mixed(mixed(mixed((uint64_t)pid + 1) + start_ns) + time_ns);
}

struct trace_identity identity_of_trace(uint64_t seed)
{
    return (struct trace_identity){mixed(seed + 1), mixed(seed + 2)};
}

/* One to one for the calls of a process; of several processes by chance alike, once in 2^64. */
uint64_t identity_of_span(uint64_t seed, uint32_t thread, uint32_t call)
{
    uint64_t number = ((uint64_t)thread << 32 | call) * 0x9e3779b97f4a7c15u ^ seed;
    number = (number ^ (number >> 32)) * 0xd6e8feb86659fd93u;
    number ^= number >> 29;
    return number ? number : 1;
}
