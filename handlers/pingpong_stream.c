/* Ping-pong, streaming: every packet is answered from the card as soon as it is there. */
#include <pingpong.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    const pingpong_t *s = state;
    PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, s->peer, s->match_bits, p.offset, NULL, 0);
    return SUCCESS;
}
