/* Prints the symbol of the function with each byte of a file from a place on, as far as it is one. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/symbols.h"

int main(int count, char **words)
{
    int file = count == 4 ? open(words[1], O_RDONLY) : -1;
    uint64_t end = count == 4 ? strtoull(words[3], NULL, 10) : 0;
    for (uint64_t place = count == 4 ? strtoull(words[2], NULL, 10) : 0; place < end;) {
        struct symbol symbol;
        char name[64];
        if (!symbols_find(file, place, &symbol, name, sizeof name))
            return 3;
        printf("%s\n", name);
        place = symbol.end > place ? symbol.end : place + 1;
    }
    return file < 0;
}
