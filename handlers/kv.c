/* A key-value store. The card keeps a hash table in host memory, without the host's CPU. The table has open addressing
 * with linear probing. A key is in the bucket of its hash or in a later one, with no empty bucket in between. */
#include <kv.h>

/* FNV-1a: http://www.isthe.com/chongo/tech/comp/fnv */
static uint32_t hash_of(const uint8_t *key, ptl_size_t length) {
    uint32_t hash = 2166136261u;
    for (ptl_size_t i = 0; i < length; i++)
        hash = (hash ^ key[i]) * 16777619u;
    return hash;
}

static int reply(const ptl_header_t *h, ptl_hdr_data_t answer, const void *value, ptl_size_t length) {
    const int sent = PtlHandlerPutFromDevice(value, length, 0, PTL_NO_ACK_REQ, h->source_id, KV_REPLY, 0, NULL, answer);
    return sent == PTL_OK ? DROP : FAIL; /* the request is done, and no part of it goes to host memory */
}

static int write_word(ptl_size_t bucket, uint64_t word) {
    return PtlHandlerDMAToHostB(&word, bucket, sizeof word, PTL_HANDLER_HOST_MEM);
}

/* Handlers of other requests run concurrently. The handler that swaps a bucket's word for a busy one owns the bucket
 * until the word is ready. The card's writes are in order, so a handler that sees a ready word also sees the key and
 * the value. */
static int insert(const ptl_header_t *h, kv_t *s) {
    const uint32_t hash = hash_of(h->base, s->key_bytes);
    const uint64_t busy = (uint64_t)hash << 32 | KV_BUSY, ready = (uint64_t)hash << 32 | KV_READY;
    uint8_t *key = s->room + PtlHandlerHPU() * s->bucket_bytes;
    uint32_t at = hash % s->buckets;
    for (uint32_t probed = 0; probed < s->buckets;) {
        const ptl_size_t bucket = at * s->bucket_bytes;
        uint64_t found = 0;
        if (PtlHandlerDMACASB(bucket, &found, busy, PTL_HANDLER_HOST_MEM) != PTL_OK)
            return FAIL;
        if (found == 0) {
            const ptl_size_t length = s->key_bytes + s->value_bytes;
            if (PtlHandlerDMAToHostB(h->base, bucket + 8, length, PTL_HANDLER_HOST_MEM) != PTL_OK)
                return FAIL;
            return write_word(bucket, ready) == PTL_OK ? reply(h, KV_INSERTED, NULL, 0) : FAIL;
        }
        if (found == busy)
            continue; /* the key may be this one, so look again */
        if (found == ready) {
            if (PtlHandlerDMAFromHostB(bucket + 8, key, s->key_bytes, PTL_HANDLER_HOST_MEM) != PTL_OK)
                return FAIL;
            if (memcmp(key, h->base, s->key_bytes) == 0) {
                if (PtlHandlerDMACASB(bucket, &found, busy, PTL_HANDLER_HOST_MEM) != PTL_OK)
                    return FAIL;
                if (found != ready)
                    continue; /* another handler is writing a value, and this handler is next */
                const ptl_size_t value = bucket + 8 + s->key_bytes;
                if (PtlHandlerDMAToHostB(h->base + s->key_bytes, value, s->value_bytes, PTL_HANDLER_HOST_MEM) != PTL_OK)
                    return FAIL;
                return write_word(bucket, ready) == PTL_OK ? reply(h, KV_UPDATED, NULL, 0) : FAIL;
            }
        }
        at = at + 1 == s->buckets ? 0 : at + 1;
        probed++;
    }
    return reply(h, KV_FULL, NULL, 0);
}

/* A bucket is transferred over the bus in one piece. */
static int lookup(const ptl_header_t *h, kv_t *s) {
    const uint32_t hash = hash_of(h->base, s->key_bytes);
    const uint64_t busy = (uint64_t)hash << 32 | KV_BUSY, ready = (uint64_t)hash << 32 | KV_READY;
    uint8_t *bucket = s->room + PtlHandlerHPU() * s->bucket_bytes;
    uint32_t at = hash % s->buckets;
    for (uint32_t probed = 0; probed < s->buckets;) {
        if (PtlHandlerDMAFromHostB(at * s->bucket_bytes, bucket, s->bucket_bytes, PTL_HANDLER_HOST_MEM) != PTL_OK)
            return FAIL;
        const uint64_t found = *(const uint64_t *)bucket;
        if (found == 0)
            break;
        if (found == busy)
            continue;
        if (found == ready && memcmp(bucket + 8, h->base, s->key_bytes) == 0)
            return reply(h, KV_FOUND, bucket + 8 + s->key_bytes, s->value_bytes);
        at = at + 1 == s->buckets ? 0 : at + 1;
        probed++;
    }
    return reply(h, KV_ABSENT, NULL, 0);
}

/* A request is one packet, and many requests are in flight at once. So the header handler, which has the whole request,
 * does all the work. */
__handler int header_handler(const ptl_header_t h, void *state) {
    kv_t *s = state;
    const ptl_size_t expected = h.match_bits == KV_INSERT ? s->key_bytes + s->value_bytes : s->key_bytes;
    if (h.length != expected || h.packet_length != expected)
        return FAIL;
    return h.match_bits == KV_INSERT ? insert(&h, s) : lookup(&h, s);
}
