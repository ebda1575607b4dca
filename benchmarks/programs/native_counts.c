/* What C code that copies does: each turn makes one call of each of six functions. */
#include <fcntl.h>
#include <unistd.h>

/* How many turns went as they should. */
long turns(long count)
{
    char bytes[16];
    long done = 0;
    int zero = open("/dev/zero", O_RDWR);
    for (long each = 0; each < count; each++) {
        int number = open("/dev/null", O_RDWR);
        done += read(zero, bytes, sizeof bytes) == sizeof bytes && write(number, bytes, sizeof bytes) == sizeof bytes &&
                pread(zero, bytes, sizeof bytes, 0) == sizeof bytes && lseek(zero, 0, SEEK_SET) == 0 && close(number) == 0;
    }
    close(zero);
    return done;
}
