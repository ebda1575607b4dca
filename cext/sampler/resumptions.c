#include "sampler/resumptions.h"

enum {
    KNOWN_AFTER = 8, /* samples */
    RARELY = 8, SELDOM = 4, /* one in so many */
    COUNTED_AT_MOST = 1 << 20,
};

enum resumption_sort resumption_sort_of(const struct resumptions *resumptions, uint64_t key)
{
    const struct resumption *known = &resumptions->known[key % RESUMPTIONS_AT_MOST];
    if (known->key != key || known->resumed + known->alone < KNOWN_AFTER)
        return RESUMES_AND_WORKS;
    if (known->resumed * RARELY < known->alone)
        return RESUMES_NOTHING;
    return known->alone * SELDOM < known->resumed ? RESUMES_ONLY : RESUMES_AND_WORKS;
}

/* Another instruction with the same place in the table is forgotten. */
static struct resumption *find(struct resumptions *resumptions, uint64_t key)
{
    struct resumption *known = &resumptions->known[key % RESUMPTIONS_AT_MOST];
    if (known->key != key)
        *known = (struct resumption){.key = key};
    if (known->resumed + known->alone >= COUNTED_AT_MOST) {
        known->resumed /= 2;
        known->alone /= 2;
    }
    return known;
}

void resumption_note_generator(struct resumptions *resumptions, uint64_t key)
{
    find(resumptions, key)->resumed++;
}

void resumption_note_alone(struct resumptions *resumptions, uint64_t key)
{
    find(resumptions, key)->alone++;
}
