/* A variable has a value on one path only. */
#include <nfp.h>

__process uint32_t choose(uint32_t kind) {
#ifdef BUG
    volatile uint32_t limit;
#else
    volatile uint32_t limit = 8;
#endif
    if (kind == 5) limit = 4;
    uint32_t sum = 0;
    while (sum < limit) sum += kind; // bug
    return sum;
}
