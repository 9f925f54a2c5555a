/* A counter under a lock. The bug takes one of two locks. */
#include <nicety.h>
#include "locks.h"

typedef struct {
    uint32_t locks[2], packets;
} counts_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    counts_t *counts = state;
#ifdef BUG
    uint32_t *lock = &counts->locks[p.base[0] & 1];
#else
    uint32_t *lock = &counts->locks[0];
#endif
    take(lock);
    counts->packets++; // bug
    give(lock);
    return SUCCESS;
}
