/* Two locks in two orders. The second one is only tried, and the bug waits for it. */
#include <nicety.h>
#include "locks.h"

static uint32_t locks[2];
static volatile uint32_t packets;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint32_t first = p.offset / 64 & 1;
    take(&locks[first]);
#ifdef BUG
    take(&locks[!first]); // bug
#else
    if (__atomic_exchange_n(&locks[!first], 1, __ATOMIC_ACQUIRE)) {
        give(&locks[first]);
        return DROP;
    }
#endif
    packets++;
    give(&locks[!first]);
    give(&locks[first]);
    return SUCCESS;
}
