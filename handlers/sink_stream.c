/* A sink that streams. A payload handler moves each packet to its place in host memory. */
#include <nicety.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    (void)state;
    PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM);
    return SUCCESS;
}
