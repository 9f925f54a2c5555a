// Removes the VLAN tag from a tagged frame, or adds one with number VLAN to an untagged frame, and forwards it to the
// host.
#include <frame.h>

#ifndef VLAN
#define VLAN 5
#endif

__handler int frame_handler(const frame_t *frame, void *state) {
    (void)state;
    // Both addresses move by the four bytes of the tag.
    uint32_t addresses[3];
    __builtin_memcpy(addresses, frame->data, 12);
    if (frame_get16(frame->data + 12) == 0x8100) {
        __builtin_memcpy(frame_pull(frame, 4), addresses, 12);
        return FRAME_HOST;
    }
    uint8_t *data = frame_push(frame, 4);
    __builtin_memcpy(data, addresses, 12);
    frame_put16(data + 12, 0x8100);
    frame_put16(data + 14, VLAN);
    return FRAME_HOST;
}
