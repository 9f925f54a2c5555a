/* A return code through a pointer. The bug sets it for some packets only. */
#include <nicety.h>

static __attribute__((noinline)) void decide(const uint8_t *bytes, int *result) {
#ifdef BUG
    if (bytes[0] & 1)
        *result = DROP;
#else
    *result = bytes[0] & 1 ? DROP : SUCCESS;
#endif
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    int result;
    (void)state;
    decide(p.base, &result);
    return result; // bug
}
