// Sends each frame back to its sender, from a thread's queues.
#include <nicety_dpa.h>

__handler int frame_handler(const frame_t *completion, void *state) {
    (void)state;
    const dpa_thread_t thread = dpa_begin();
    const dpa_packet_t packet = dpa_receive(thread, completion);
    dpa_reflect(packet.data);
    dpa_send(thread, packet);
    return dpa_end(thread, FRAME_WIRE);
}
