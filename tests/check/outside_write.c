/* Terminates a text in the packet. The bug writes behind the packet. */
#include <nicety.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    (void)state;
#ifdef BUG
    p.base[p.length] = 0; // bug
#else
    p.base[p.length - 1] = 0;
#endif
    return SUCCESS;
}
