#include <nfp.h>

/* Returns each number plus one to the sender, and then a block of `size` bytes unchanged. */
__process int32_t ping(uint32_t target, uint32_t count, uint32_t size) {
    uint32_t number;
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) {
        result = channel_read(target, &number, sizeof number);
        number++;
        if (result == CHANNEL_OK) result = channel_write(target, &number, sizeof number);
    }
    if (result == CHANNEL_OK) result = channel_read_ind(target, nfp_emem(0), size);
    if (result == CHANNEL_OK) result = channel_write_ind(target, nfp_emem(0), size);
    return result;
}
