/* A process sends a frame out of memory, and another context changes the memory. The bug does not wait for the port. */
#include <nfp.h>

__process int32_t give(void) {
    uint8_t head[16] = {1};
#ifdef BUG
    nfp_signal(0, 1, 1);
#endif
    int32_t result = nfp_eth_send(1, head, sizeof head, nfp_emem(0), 1400); // bug
#ifndef BUG
    nfp_signal(0, 1, 1);
#endif
    return result;
}

__process void fill(void) {
    nfp_wait_all(1 << 1);
    *(volatile uint32_t *)nfp_emem(16) = 5; // bug
}

__process int32_t take(void) {
    uint8_t head[16];
    uint32_t source;
    return nfp_eth_receive(head, sizeof head, &source);
}
