// Measures the cycles of a load of the first word of each line of a frame, as the DDIO test of BenchBF3 does. The state
// has a word for each line of the last frame.
#include <nicety_dpa.h>

static uint32_t cycles(void) {
    uint32_t now;
    __asm__ volatile("rdcycle %0" : "=r"(now)::"memory");
    return now;
}

__handler int frame_handler(const frame_t *completion, void *state) {
    const dpa_thread_t thread = dpa_begin();
    const dpa_packet_t packet = dpa_receive(thread, completion);
    uint64_t sum = 0;
    for (uint32_t line = 0; line * 64 + 8 <= packet.length; line++) {
        const volatile uint64_t *const word = (const volatile uint64_t *)(packet.data + 64 * line);
        const uint32_t begin = cycles();
        sum += *word;
        __asm__ volatile("" : "+r"(sum));
        ((uint32_t *)state)[line] = cycles() - begin;
    }
    return dpa_end(thread, FRAME_DROP);
}
