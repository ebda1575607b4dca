/* The fields of a recording's settings, by name. */
#include "core/settings.h"

#include <stddef.h>

#define FIELD_OF_SETTING(type, name, meaning) {#name, SETTING_##type, offsetof(struct recorder_settings, name)},
const struct setting_field recorder_settings_fields[] = {RECORDER_SETTINGS(FIELD_OF_SETTING){0}};

#define WORD_OF_ROWS(name) #name,
const char *const rows_words[] = {ROWS(WORD_OF_ROWS) NULL};
