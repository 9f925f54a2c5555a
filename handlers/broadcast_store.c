/* Broadcast, store and forward. The card forwards a message of one packet to the children. A larger message is
 * deposited in host memory. Once the message is complete, it is forwarded from there. */
#include <broadcast.h>

__handler int header_handler(const ptl_header_t h, void *state) {
    broadcast_t *s = state;
    s->length = h.length;
    if (h.length > s->packet_bytes)
        return PROCEED;
    FOR_EACH_CHILD(s, child) {
        if (PtlHandlerPutFromDevice(h.base, h.length, 0, PTL_NO_ACK_REQ, child, s->match_bits, 0, NULL, 0) != PTL_OK)
            return FAIL;
    }
    return PROCEED; /* the card deposits the message meanwhile */
}

__handler int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
    (void)dropped_bytes, (void)flow_control_triggered;
    const broadcast_t *s = state;
    if (s->length <= s->packet_bytes)
        return SUCCESS; /* the header handler has forwarded the message */
    FOR_EACH_CHILD(s, child) {
        if (PtlHandlerPutFromHost(0, s->length, 0, PTL_NO_ACK_REQ, child, s->match_bits, 0, NULL, 0) != PTL_OK)
            return FAIL;
    }
    return SUCCESS;
}
