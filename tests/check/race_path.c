/* A counter under a lock. The bug has a path without it. */
#include <nicety.h>
#include "locks.h"

typedef struct {
    uint32_t lock, packets, even;
} counts_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    counts_t *counts = state;
#ifdef BUG
    if (p.base[0] & 1) {
        counts->packets++; // bug
        return SUCCESS;
    }
#endif
    take(&counts->lock);
    counts->packets++; // bug
    counts->even += !(p.base[0] & 1);
    give(&counts->lock);
    return SUCCESS;
}
