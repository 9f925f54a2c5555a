/* Two locks. The bug takes them in two orders. */
#include <nicety.h>
#include "locks.h"

typedef struct {
    uint32_t first, second, packets, bytes;
} counts_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    counts_t *counts = state;
    if (p.offset & 64) {
        take(&counts->first);
        take(&counts->second); // bug
    } else {
#ifdef BUG
        take(&counts->second);
        take(&counts->first); // bug
#else
        take(&counts->first);
        take(&counts->second);
#endif
    }
    counts->packets++;
    counts->bytes += p.length;
    give(&counts->second);
    give(&counts->first);
    return SUCCESS;
}
