// Adds one to addresses and ports of UDP over IPv4, and sends the frame back. It leaves checksums to the card.
#include <nicety_dpa.h>

static void add_one(uint8_t *at) {
    frame_put32(at, frame_get32(at) + 1);
}

__handler int frame_handler(const frame_t *completion, void *state) {
    (void)state;
    const dpa_thread_t thread = dpa_begin();
    const dpa_packet_t packet = dpa_receive(thread, completion);
    if (packet.length < 42)
        return dpa_end(thread, FRAME_DROP);
    uint8_t *const data = packet.data;
    dpa_reflect(data);
    add_one(data + 26);
    add_one(data + 30);
    frame_put16(data + 34, (uint16_t)(frame_get16(data + 34) + 1));
    frame_put16(data + 36, (uint16_t)(frame_get16(data + 36) + 1));
    dpa_send(thread, packet);
    return dpa_end(thread, FRAME_WIRE);
}
