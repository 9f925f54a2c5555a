// Checks and mends the headers of UDP over IPv4, and sends the frame back. A frame without an identification, an
// address, a port or a length is dropped.
#include <nicety_dpa.h>

static int is_valid(uint8_t *data) {
    if (data[14] != 0x45)
        data[14] = 0x45;
    if (data[15] != 0)
        data[15] = 0;
    if (data[22] != 64)
        data[22] = 64;
    if (data[23] != 17)
        data[23] = 17;
    return frame_load16(data + 18) != 0 && frame_load32(data + 26) != 0 && frame_load32(data + 30) != 0 &&
           frame_load16(data + 34) != 0 && frame_load16(data + 36) != 0 && frame_load16(data + 38) != 0;
}

__handler int frame_handler(const frame_t *completion, void *state) {
    (void)state;
    const dpa_thread_t thread = dpa_begin();
    const dpa_packet_t packet = dpa_receive(thread, completion);
    if (packet.length < 42 || !is_valid(packet.data))
        return dpa_end(thread, FRAME_DROP);
    dpa_reflect(packet.data);
    dpa_send(thread, packet);
    return dpa_end(thread, FRAME_WIRE);
}
