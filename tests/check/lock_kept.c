/* A lock with an early return. The bug keeps the lock there, in the last packet. */
#include <nicety.h>
#include "locks.h"

typedef struct {
    uint32_t lock, packets;
} counts_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    counts_t *counts = state;
    take(&counts->lock); // bug
    counts->packets++;
    if (p.offset == 7 * 64) {
#ifndef BUG
        give(&counts->lock);
#endif
        return DROP;
    }
    give(&counts->lock);
    return SUCCESS;
}
