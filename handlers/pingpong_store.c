/* Ping-pong, store and forward. The card answers a message of one packet. A larger message is deposited in host memory.
 * Once the message is complete, it is answered from there. */
#include <pingpong.h>

__handler int header_handler(const ptl_header_t h, void *state) {
    pingpong_t *s = state;
    s->length = h.length;
    return h.length <= s->packet_bytes ? PROCESS_DATA : PROCEED;
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    const pingpong_t *s = state;
    PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, s->peer, s->match_bits, p.offset, NULL, 0);
    return SUCCESS;
}

__handler int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    (void)dropped_bytes, (void)flow_control_triggered;
    const pingpong_t *s = state;
    if (s->length > s->packet_bytes)
        PtlHandlerPutFromHost(0, s->length, 0, PTL_NO_ACK_REQ, s->peer, s->match_bits, 0, NULL, 0);
    return SUCCESS;
}
