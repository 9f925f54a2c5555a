/* Sends host memory, then stores into it. The bug stores into bytes that the card has not fetched. */
#include <nicety.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    (void)state;
    PtlHandlerPutFromHost(0, 64, 0, PTL_NO_ACK_REQ, 0, 1, 0, NULL, 0);
#ifdef BUG
    PtlHandlerDMAToHostB(p.base, 32, 8, PTL_ME_HOST_MEM); // bug
#else
    PtlHandlerDMAToHostB(p.base, 32, 8, PTL_HANDLER_HOST_MEM);
#endif
    return SUCCESS;
}
