// Counts frames by a hash of addresses and ports, in a table of each thread, and sends them back. The state has
// DPA_FLOWS counters for each of DPA_THREADS threads.
#include <nicety_dpa.h>

#ifndef DPA_FLOWS
#define DPA_FLOWS 16
#endif

// Hashes four bytes, one after another: a shift to the left, a shift to the right, and a byte.
static uint32_t hash(uint32_t value) {
    uint32_t result = 1315423911u;
    for (int i = 0; i < 4; i++)
        result ^= (result << 5) + (value >> 8 * i & 0xff) + (result >> 2);
    return result;
}

__handler int frame_handler(const frame_t *completion, void *state) {
    const dpa_thread_t thread = dpa_begin();
    const dpa_packet_t packet = dpa_receive(thread, completion);
    if (packet.length < 42)
        return dpa_end(thread, FRAME_DROP);
    uint8_t *const data = packet.data;
    dpa_reflect(data);
    const uint32_t sum = frame_load32(data + 26) + frame_load32(data + 30) + frame_load16(data + 34) + frame_load16(data + 36);
    uint64_t *const counters = (uint64_t *)state + PtlHandlerHPU() * DPA_FLOWS;
    counters[hash(sum) % DPA_FLOWS]++;
    dpa_send(thread, packet);
    return dpa_end(thread, FRAME_WIRE);
}
