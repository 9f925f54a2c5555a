/* Compares a packet with the preceding one. The bug reads that one at its address, where another packet is now. */
#include <nicety.h>
#include "locks.h"

typedef struct {
    uint32_t lock;
    uint8_t *at;
    uint32_t byte, equal;
} kept_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    kept_t *kept = state;
    take(&kept->lock);
#ifdef BUG
    if (kept->at && kept->at[1] == p.base[1]) // bug
        kept->equal++;
    kept->at = p.base;
#else
    if (kept->byte == p.base[1])
        kept->equal++;
    kept->byte = p.base[1];
#endif
    give(&kept->lock);
    return SUCCESS;
}
