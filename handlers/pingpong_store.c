/* Ping-pong, store and forward: a message of one packet is answered from the card; a larger one is deposited in
 * host memory and answered from there once it is complete. */
#include <pingpong.h>

__handler int header_handler(const ptl_header_t h, void *state) {
    const pingpong_t *s = state;
    return h.length <= s->packet_bytes ? PROCESS_DATA : PROCEED;
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    const pingpong_t *s = state;
    PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, s->peer, s->match_bits, p.offset, NULL, 0);
    return SUCCESS;
}
