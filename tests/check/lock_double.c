/* A function takes a lock. The bug calls it with the lock taken. */
#include <nicety.h>
#include "locks.h"

typedef struct {
    uint32_t lock, packets, bytes;
} counts_t;

static __attribute__((noinline)) void add_bytes(counts_t *counts, uint32_t bytes) {
    take(&counts->lock); // bug
    counts->bytes += bytes;
    give(&counts->lock);
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    counts_t *counts = state;
    take(&counts->lock);
    counts->packets++;
#ifdef BUG
    add_bytes(counts, p.length);
    give(&counts->lock);
#else
    give(&counts->lock);
    add_bytes(counts, p.length);
#endif
    return SUCCESS;
}
