/* Copies a record into the state under a lock of PtlHandlerCAS. The bug copies before it has the lock. */
#include <nicety.h>

typedef struct {
    uint64_t lock;
    uint8_t record[24];
} kept_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    kept_t *kept = state;
#ifdef BUG
    memcpy(kept->record, p.base, 24); // bug
#endif
    while (!PtlHandlerCAS(&kept->lock, 0, 1)) {
    }
#ifndef BUG
    memcpy(kept->record, p.base, 24);
#endif
    PtlHandlerCAS(&kept->lock, 1, 0);
    return SUCCESS;
}
