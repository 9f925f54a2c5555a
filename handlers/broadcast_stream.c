/* Broadcast, streaming: every packet is forwarded to the children on arrival, and then written to host memory. */
#include <broadcast.h>

static int forward(const broadcast_t *s, const void *bytes, ptl_size_t length, ptl_size_t offset) {
    FOR_EACH_CHILD(s, child) {
        int sent = PtlHandlerPutFromDevice(bytes, length, 0, PTL_NO_ACK_REQ, child, s->match_bits, offset, NULL, 0);
        if (sent != PTL_OK)
            return sent;
    }
    return PTL_OK;
}

/* A card sends only messages of one packet from its own memory, so below the root's children every packet is a message.
 * Only its header has the offset of its bytes, and several such messages in flight share this state. So the header
 * handler, which sees the whole message, forwards them, and leaves the deposit to the card. */
__handler int header_handler(const ptl_header_t h, void *state) {
    if (h.length > h.packet_length)
        return PROCESS_DATA; /* the root's own message, of several packets: the payload handler forwards them */
    return forward(state, h.base, h.length, h.offset) == PTL_OK ? PROCEED : FAIL;
}

__handler int payload_handler(const ptl_payload_t p, void *state) {
    /* The children first: the host waits for the last byte anyway, and the children wait for this packet. */
    if (forward(state, p.base, p.length, p.offset) != PTL_OK)
        return FAIL;
    return PtlHandlerDMAToHostB(p.base, p.offset, p.length, PTL_ME_HOST_MEM) == PTL_OK ? SUCCESS : FAIL;
}
