/* A mean. The bug divides by a counter that begins with 0. */
#include <nicety.h>

typedef struct {
    uint32_t bytes, packets, mean;
} counts_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    counts_t *counts = state;
    uint32_t bytes = __atomic_add_fetch(&counts->bytes, p.length, __ATOMIC_RELAXED);
#ifdef BUG
    uint32_t packets = __atomic_fetch_add(&counts->packets, 1, __ATOMIC_RELAXED);
#else
    uint32_t packets = __atomic_add_fetch(&counts->packets, 1, __ATOMIC_RELAXED);
#endif
    __atomic_store_n(&counts->mean, bytes / packets, __ATOMIC_RELEASE); // bug
    return SUCCESS;
}
