/* Processes at the far end of channels: they read, write and send back, for benchmarks and to start from. Each registers
 * `target` first, and ends with the first error, which it returns. */
#include <nfp.h>

/* Reads `count` direct messages of `size` bytes. */
__process int32_t channels_read(uint32_t target, uint32_t size, uint32_t count) {
    uint8_t message[CHANNEL_DIRECT];
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) result = channel_read(target, message, size);
    return result;
}

/* Writes `count` direct messages of `size` bytes; the bytes of each are its number and what follows on it. */
__process int32_t channels_write(uint32_t target, uint32_t size, uint32_t count) {
    uint8_t message[CHANNEL_DIRECT];
    int32_t result = channel_register(target);
    for (uint32_t number = 0; result == CHANNEL_OK && number < count; number++) {
        for (uint32_t i = 0; i < CHANNEL_DIRECT; i++) message[i] = (uint8_t)(number + i);
        result = channel_write(target, message, size);
    }
    return result;
}

/* Sends `count` direct messages of `size` bytes back. */
__process int32_t channels_echo(uint32_t target, uint32_t size, uint32_t count) {
    uint8_t message[CHANNEL_DIRECT];
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) {
        result = channel_read(target, message, size);
        if (result == CHANNEL_OK) result = channel_write(target, message, size);
    }
    return result;
}

/* Reads `count` indirect messages of `size` bytes into a memory. */
__process int32_t channels_read_ind(uint32_t target, uint32_t size, uint32_t count, volatile void *memory) {
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) result = channel_read_ind(target, memory, size);
    return result;
}

/* Writes `count` indirect messages of `size` bytes out of a memory. */
__process int32_t channels_write_ind(uint32_t target, uint32_t size, uint32_t count, const volatile void *memory) {
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) result = channel_write_ind(target, memory, size);
    return result;
}

/* Sends `count` indirect messages of `size` bytes back, by way of a memory. */
__process int32_t channels_echo_ind(uint32_t target, uint32_t size, uint32_t count, volatile void *memory) {
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) {
        result = channel_read_ind(target, memory, size);
        if (result == CHANNEL_OK) result = channel_write_ind(target, memory, size);
    }
    return result;
}
