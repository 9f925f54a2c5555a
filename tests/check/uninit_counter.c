/* A counter goes up by the bytes of long packets. The bug gives short ones no number. */
#include <nicety.h>

__attribute__((noinline)) static void bytes_of(uint64_t *bytes, uint32_t length) {
    if (length > 100) *bytes = length;
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
#ifdef BUG
    uint64_t bytes;
#else
    uint64_t bytes = 0;
#endif
    bytes_of(&bytes, p.length);
    PtlHandlerCTInc(bytes); // bug
    return SUCCESS;
}
