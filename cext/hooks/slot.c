#include "hooks/slot.h"

/* The words of each list, in the order of the numbers, ended by NULL. */
#define WORD_OF_KIND(name) #name,
#define WORD(name, meaning) #name,
const char *const kind_words[] = {KINDS(WORD_OF_KIND) NULL};
const char *const detail_words[] = {"", DETAILS(WORD) NULL};
const char *const moves_words[] = {"", MOVES(WORD) NULL};
const char *const choice_words[] = {"", CHOICES(WORD) NULL};
const char *const effect_words[] = {"", EFFECTS(WORD) NULL};
const char *const passes_words[] = {"", PASSES(WORD) NULL};
const char *const lock_words[] = {"", LOCKS(WORD) NULL};
const char *const level_words[] = {LEVELS(WORD_OF_LEVEL) NULL};

bool is_traffic(const struct slot *slot)
{
    bool asks = slot->detail == DETAIL_descriptor && slot->choice == CHOICE_descriptor;
    return asks && (slot->effect == EFFECT_none || slot->effect == EFFECT_send || slot->effect == EFFECT_receive);
}

bool slot_lower(struct slot *slot, uint32_t number, enum level level)
{
    if (slot_watched(slot) == WATCHED_unfit)
        return false;
    uint32_t added = number - slot->intrinsic;
    if (added >= slot->numbers || is_always_timed(slot) || slot->sampled)
        return false;
    __atomic_store_n(&slot->levels[added], (uint8_t)level, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->lowered, 1, __ATOMIC_RELAXED);
    return true;
}
