/* A process reads a message into memory, and another one looks at it. The bug looks before the message is complete. */
#include <nfp.h>

__process int32_t take(void) {
    int32_t result = channel_register(7);
    nfp_signal(1, 0, 1);
    if (result == CHANNEL_OK) result = channel_read_ind(7, nfp_emem(0), 65536); // bug
    nfp_signal(1, 0, 2);
    return result;
}

__process uint32_t look(void) {
    volatile uint32_t *words = nfp_emem(0);
    uint32_t sum = 0;
#ifdef BUG
    nfp_wait_all(1 << 1);
    for (uint32_t i = 0; i < 400; i++) nfp_yield();
#else
    nfp_wait_all(1 << 2);
#endif
    for (uint32_t i = 0; i < 512; i++) sum += words[i]; // bug
    return sum;
}
