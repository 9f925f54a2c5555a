/* RAID-5: a data server stores a client's write and sends the difference to the parity server, packet by packet. The
 * parity server updates the parity. The servers' CPUs are not involved. */
#include <storage.h>

/* XORs `with` into `to`. Packets and their buffers begin at whole words. */
static void xor_into(uint8_t *restrict to, const uint8_t *restrict with, ptl_size_t length) {
    uint32_t *restrict a = (uint32_t *)to;
    const uint32_t *restrict b = (const uint32_t *)with;
    ptl_size_t left = length / 4;
    /* Four words are processed at a time, so that no word is used in the cycle after its load. */
    for (; left >= 4; left -= 4, a += 4, b += 4) {
        const uint32_t a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
        const uint32_t b0 = b[0], b1 = b[1], b2 = b[2], b3 = b[3];
        a[0] = a0 ^ b0, a[1] = a1 ^ b1, a[2] = a2 ^ b2, a[3] = a3 ^ b3;
    }
    for (; left > 0; left--)
        *a++ ^= *b++;
    for (ptl_size_t i = length & ~3u; i < length; i++)
        to[i] ^= with[i];
}

/* Sends a message without payload. */
static int notify(ptl_process_t to, ptl_match_bits_t what) {
    return PtlHandlerPutFromDevice(NULL, 0, 0, PTL_NO_ACK_REQ, to, what, 0, NULL, 0);
}

/* Sends the block that a message requests, of any length, from host memory. */
static int serve(const ptl_header_t *h) {
    const ptl_size_t offset = h->hdr_data >> 32, length = (ptl_size_t)h->hdr_data;
    return PtlHandlerPutFromHost(offset, length, 0, PTL_NO_ACK_REQ, h->source_id, STORAGE_BLOCK, 0, NULL, 0);
}

/* ---- A data server ---- */

__handler int data_header(const ptl_header_t h, void *state) {
    data_t *s = state;
    int code;
    switch (h.match_bits) {
    case STORAGE_WRITE:
        s->client = h.source_id;
        s->offset = (ptl_size_t)h.hdr_data;
        s->length = h.length;
        return PROCESS_DATA;
    case STORAGE_ACK: /* all parts are in the parity, and each part was stored here before it was sent */
        code = notify(s->client, STORAGE_DONE);
        break;
    case STORAGE_READ:
        code = serve(&h);
        break;
    default:
        return FAIL;
    }
    return code == PTL_OK ? DROP : FAIL; /* the message is done: no part of it goes to host memory */
}

/* Packets of a write have separate places, so no packet needs to wait for another one. */
__handler int data_payload(const ptl_payload_t p, void *state) {
    data_t *s = state;
    const ptl_size_t offset = s->offset + p.offset;
    uint8_t *old = s->old + PtlHandlerHPU() * s->packet_bytes;
    if (PtlHandlerDMAFromHostB(offset, old, p.length, PTL_ME_HOST_MEM) != PTL_OK)
        return FAIL;
    if (PtlHandlerDMAToHostB(p.base, offset, p.length, PTL_ME_HOST_MEM) != PTL_OK)
        return FAIL;
    xor_into(p.base, old, p.length);
    const int sent = PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, s->parity, STORAGE_DIFF, offset, NULL,
                                             s->length);
    return sent == PTL_OK ? SUCCESS : FAIL;
}

/* ---- The parity server, and a server that is rebuilt ---- */

static void lock(uint64_t *lock) {
    while (!PtlHandlerCAS(lock, 0, 1))
        PtlHandlerYield(); /* the lock's owner may wait for this processor */
}

/* Reads, changes and writes host memory, while no other handler does so at this place. */
static int merge(parity_t *s, const uint8_t *bytes, ptl_size_t length, ptl_size_t offset) {
    uint8_t *old = s->old + PtlHandlerHPU() * s->packet_bytes;
    uint32_t one = offset / s->packet_bytes % STORAGE_LOCKS;
    uint32_t other = (offset + length - 1) / s->packet_bytes % STORAGE_LOCKS;
    if (one > other) { /* always in one order, as two handlers with one lock each could deadlock */
        const uint32_t swap = one;
        one = other, other = swap;
    }
    lock(&s->lock[one]);
    if (other != one)
        lock(&s->lock[other]);
    int code = PtlHandlerDMAFromHostB(offset, old, length, PTL_ME_HOST_MEM);
    if (code == PTL_OK) {
        xor_into(old, bytes, length);
        code = PtlHandlerDMAToHostB(old, offset, length, PTL_ME_HOST_MEM);
    }
    s->lock[one] = 0;
    if (other != one) /* a second release could release another handler's lock */
        s->lock[other] = 0;
    return code;
}

/* A part of a write is a message of one packet. Only the header has the part's offset, and many such messages share
 * this state. So the header handler does all the work. A rebuilt server gets whole blocks, at the offset of the
 * message. */
__handler int parity_header(const ptl_header_t h, void *state) {
    parity_t *s = state;
    if (h.match_bits == STORAGE_READ)
        return serve(&h) == PTL_OK ? DROP : FAIL;
    if (h.length > h.packet_length)
        return PROCESS_DATA;
    if (merge(s, h.base, h.packet_length, h.offset) != PTL_OK)
        return FAIL;
    if (h.match_bits == STORAGE_DIFF) {
        uint64_t before, *received = &s->received[h.source_id];
        PtlHandlerFAdd(received, &before, h.packet_length);
        if (before + h.packet_length == h.hdr_data) {
            *received = 0; /* after the last part; the next write at this server begins after the end of this one */
            if (notify(h.source_id, STORAGE_ACK) != PTL_OK)
                return FAIL;
        }
    }
    return DROP;
}

__handler int parity_payload(const ptl_payload_t p, void *state) {
    return merge(state, p.base, p.length, p.offset) == PTL_OK ? SUCCESS : FAIL;
}
