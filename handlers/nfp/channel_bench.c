/* The processes of the channel benchmarks. Each process registers `target`, transfers `count` messages of `size` bytes,
 * and returns the result of the last transfer. Received bytes are stored and sent bytes are loaded, so that the host
 * can check every byte. */
#include <nfp.h>

#define DIRECT_WORDS (CHANNEL_DIRECT / 4)

/* Reads direct messages, and stores them one after the other, NFP_TRANSFER bytes apart. */
__process int32_t bench_read(uint32_t target, uint32_t size, uint32_t count, volatile uint8_t *stored) {
    uint32_t message[DIRECT_WORDS] = {0};
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) {
        result = channel_read(target, message, size);
        nfp_write(stored, message, CHANNEL_DIRECT);
        stored += NFP_TRANSFER;
    }
    return result;
}

/* Writes direct messages from a memory, and adds one to its first word for each message. */
__process int32_t bench_write(uint32_t target, uint32_t size, uint32_t count, const volatile uint8_t *first) {
    uint32_t message[DIRECT_WORDS];
    int32_t result = channel_register(target);
    nfp_read(message, first, CHANNEL_DIRECT);
    while (result == CHANNEL_OK && count-- > 0) {
        result = channel_write(target, message, size);
        message[0]++;
    }
    return result;
}

/* Reads indirect messages into a memory, each over the previous one. */
__process int32_t bench_read_ind(uint32_t target, uint32_t size, uint32_t count, volatile uint8_t *memory) {
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) result = channel_read_ind(target, memory, size);
    return result;
}

/* Writes indirect messages out of a memory. */
__process int32_t bench_write_ind(uint32_t target, uint32_t size, uint32_t count, const volatile uint8_t *memory) {
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) result = channel_write_ind(target, memory, size);
    return result;
}
