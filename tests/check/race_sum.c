/* Adds to a sum of 64 bits in the state. The bug adds without an atomic operation. */
#include <nicety.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    uint64_t *sum = state;
#ifdef BUG
    *sum += p.length; // bug
#else
    uint64_t before;
    PtlHandlerFAdd(sum, &before, p.length);
#endif
    return SUCCESS;
}
