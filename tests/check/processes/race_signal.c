/* A process announces a block by a signal. The bug sends the signal before the block is written. */
#include <nfp.h>

__process void produce(void) {
    uint32_t block[8];
    for (uint32_t i = 0; i < 8; i++) block[i] = i * i;
#ifdef BUG
    nfp_signal(1, 0, 3);
    nfp_write(nfp_ctm(256), block, sizeof block); // bug
#else
    nfp_write(nfp_ctm(256), block, sizeof block);
    nfp_signal(1, 0, 3);
#endif
}

__process uint32_t consume(void) {
    uint32_t block[8], sum = 0;
    nfp_wait_all(1 << 3);
    nfp_read(block, nfp_ctm(256), sizeof block); // bug
    for (uint32_t i = 0; i < 8; i++) sum += block[i];
    return sum;
}
