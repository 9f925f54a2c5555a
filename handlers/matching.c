/* Rendezvous on the card: the request of a long message has matched a receive, so the card gets the bytes,
 * independently of the host's CPU. */
#include <matching.h>

__handler int header_handler(const ptl_header_t h, void *state) {
    (void)state;
    if (h.hdr_data == 0)
        return PROCEED; /* a short message: the card deposits it at the receive's place */
    const ptl_size_t length = (ptl_size_t)h.hdr_data;
    const ptl_match_bits_t data = MATCHING_DATA | h.hdr_data >> 32;
    /* The match entry's counter notifies the host when the bytes are there. */
    const int got = PtlHandlerGetToHost(0, length, PTL_ME_HOST_MEM, 1, h.source_id, data, 0);
    return got == PTL_OK ? DROP : FAIL; /* no part of the request itself goes to host memory */
}
