/* Sends bytes of the state. The bug sends more than a packet carries. */
#include <nicety.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    (void)p;
#ifdef BUG
    ptl_size_t length = PTL_MAX_SIZE + 4;
#else
    ptl_size_t length = PTL_MAX_SIZE;
#endif
    PtlHandlerPutFromDevice(state, length, 0, PTL_NO_ACK_REQ, 0, 1, 0, NULL, 0); // bug
    return SUCCESS;
}
