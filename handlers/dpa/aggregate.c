// Adds the values of a frame's pairs to a table of DPA_ENTRIES sums, which is the state, and drops the frame. Byte 56
// begins the number of pairs. Byte 64 begins the pairs: a key and a value of 8 bytes each, in the cores' own order.
// Threads add without atomic operations, so that sums of two threads for one key may miss values.
#include <nicety_dpa.h>

#ifndef DPA_ENTRIES
#define DPA_ENTRIES 65536
#endif

typedef struct {
    uint64_t key, value;
} pair_t;

__handler int frame_handler(const frame_t *completion, void *state) {
    const dpa_thread_t thread = dpa_begin();
    const dpa_packet_t packet = dpa_receive(thread, completion);
    if (packet.length < 64)
        return dpa_end(thread, FRAME_DROP);
    uint64_t pairs;
    __builtin_memcpy(&pairs, packet.data + 56, 8);
    const uint64_t most = (packet.length - 64) / sizeof(pair_t);
    if (pairs > most)
        pairs = most;
    for (uint64_t i = 0; i < pairs; i++) {
        pair_t pair;
        __builtin_memcpy(&pair, packet.data + 64 + i * sizeof pair, sizeof pair);
        ((uint32_t *)state)[pair.key % DPA_ENTRIES] += (uint32_t)pair.value;
    }
    return dpa_end(thread, FRAME_DROP);
}
