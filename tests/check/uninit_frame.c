/* Hashes a key on the stack. The bug leaves the ports of other protocols without a value. */
#include <frame.h>

typedef struct {
    uint32_t source, destination;
    uint16_t ports[2];
} key_t;

static __attribute__((noinline)) void read_key(const uint8_t *data, key_t *key) {
    key->source = frame_load32(data + 26);
    key->destination = frame_load32(data + 30);
#ifdef BUG
    if (data[23] == 6) {
#else
    {
#endif
        key->ports[0] = frame_load16(data + 34);
        key->ports[1] = frame_load16(data + 36);
    }
}

__handler int frame_handler(const frame_t *frame, void *state) {
    key_t key;
    read_key(frame->data, &key);
    uint32_t hash = (key.source ^ key.destination ^ key.ports[0] ^ key.ports[1]) & 63;
    __atomic_fetch_add((uint32_t *)state + hash, 1, __ATOMIC_RELAXED); // bug
    return FRAME_DROP;
}
