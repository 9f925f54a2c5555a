/* A process moves a frame into memory, and another context reads it. The bug announces the bytes before the move. */
#include <nfp.h>

__process int32_t send(void) {
    uint8_t head[16] = {1};
    for (uint32_t i = 0; i < 2000; i++) nfp_yield();
    return nfp_eth_send(1, head, sizeof head, nfp_emem(0), 1400);
}

__process int32_t take(void) {
    uint8_t head[16];
    uint32_t source;
    int32_t bytes = nfp_eth_receive(head, sizeof head, &source);
    if (bytes < 1416) return bytes;
#ifdef BUG
    nfp_signal(1, 0, 4);
    nfp_eth_move(nfp_emem(8192), 16, 1400); // bug
#else
    nfp_eth_move(nfp_emem(8192), 16, 1400);
    nfp_signal(1, 0, 4);
#endif
    return 0;
}

__process uint32_t look(void) {
    nfp_wait_all(1 << 4);
    return *(volatile uint32_t *)nfp_emem(8192); // bug
}
