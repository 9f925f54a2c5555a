/* A process sends a block to the host, and another one fills the block again. The bug does not wait for the send. */
#include <nfp.h>

__process int32_t give(void) {
    int32_t result = channel_register(7);
#ifdef BUG
    nfp_signal(1, 0, 1);
#endif
    if (result == CHANNEL_OK) result = channel_write_ind(7, nfp_emem(0), 65536); // bug
#ifndef BUG
    nfp_signal(1, 0, 1);
#endif
    return result;
}

__process void fill(void) {
    uint32_t block[16];
    for (uint32_t i = 0; i < 16; i++) block[i] = i;
    nfp_wait_all(1 << 1);
    for (uint32_t i = 0; i < 100; i++) nfp_write(nfp_emem(64 * i), block, sizeof block); // bug
}
