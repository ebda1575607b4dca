/* Values that SQL of a dialect that is not known gives as bare words: to procedures, and as data in the statement. */
#pragma once

/* Where they begin in the statement between two places; NULL if it has none. */
char *bare_values(char *at, char *end);
