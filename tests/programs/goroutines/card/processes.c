/* Processes for main.go. */
#include <nfp.h>

/* Converts arriving text to capitals, and sends it back. */
__process int32_t shout(uint32_t target, uint32_t count) {
    char text[8];
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) {
        result = channel_read(target, text, 8);
        for (int i = 0; i < 8; i++)
            if (text[i] >= 'a' && text[i] <= 'z') text[i] -= 'a' - 'A';
        if (result == CHANNEL_OK) result = channel_write(target, text, 8);
    }
    return result;
}

/* Writes its number after `cycles` cycles. */
__process int32_t late(uint32_t target, uint32_t cycles) {
    channel_register(target);
    for (uint32_t begun = nfp_cycle(); nfp_cycle() - begun < cycles;) nfp_yield();
    return channel_write(target, &target, sizeof target);
}

/* Writes words of a memory by an indirect message, after `cycles` cycles. */
__process int32_t bulk(uint32_t target, uint32_t cycles, uint32_t bytes) {
    channel_register(target);
    for (uint32_t begun = nfp_cycle(); nfp_cycle() - begun < cycles;) nfp_yield();
    return channel_write_ind(target, nfp_emem(0), bytes);
}

/* Doubles a word of a memory; there is none at 0. */
__process uint32_t twice(volatile uint32_t *word) {
    *word *= 2;
    return *word;
}
