/* A process moves a part of a frame. The bug gives the frame up before. */
#include <nfp.h>

__process int32_t send(void) {
    uint8_t head[16] = {1};
    return nfp_eth_send(1, head, sizeof head, nfp_emem(0), 100);
}

__process int32_t take(void) {
    uint8_t head[16];
    uint32_t source;
    int32_t bytes = nfp_eth_receive(head, sizeof head, &source);
    if (bytes < 100) return bytes;
#ifdef BUG
    nfp_eth_move(nfp_emem(0), 0, 0);
    return nfp_eth_move(nfp_emem(0), 16, 84); // bug
#else
    int32_t result = nfp_eth_move(nfp_emem(0), 16, 84);
    nfp_eth_move(nfp_emem(0), 0, 0);
    return result;
#endif
}
