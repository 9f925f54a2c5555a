/* A lock on one path. The bug releases it on both. */
#include <nicety.h>
#include "locks.h"

typedef struct {
    uint32_t lock, packets;
} counts_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    counts_t *counts = state;
    bool counted = p.base[0] & 1;
    if (counted) {
        take(&counts->lock);
        counts->packets++;
    }
#ifdef BUG
    give(&counts->lock); // bug
#else
    if (counted)
        give(&counts->lock);
#endif
    return SUCCESS;
}
