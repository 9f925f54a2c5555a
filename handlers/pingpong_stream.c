/* Ping-pong, streaming: the card answers every packet on arrival. */
#include <pingpong.h>

__handler int payload_handler(const ptl_payload_t p, void *state) {
    const pingpong_t *s = state;
    PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, s->peer, s->match_bits, p.offset, NULL, 0);
    return SUCCESS;
}
