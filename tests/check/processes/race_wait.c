/* Two producers have a signal each. The bug waits for any of them, and reads both blocks. */
#include <nfp.h>

__process void produce(void) {
    volatile uint32_t *words = nfp_imem(0);
    words[0] = 5;
    nfp_signal(1, 0, 1);
    for (uint32_t i = 0; i < 50; i++) nfp_yield();
    words[1] = 7; // bug
    nfp_signal(1, 0, 2);
}

__process uint32_t consume(void) {
    volatile uint32_t *words = nfp_imem(0);
#ifdef BUG
    nfp_wait_any(1 << 1 | 1 << 2);
#else
    nfp_wait_all(1 << 1 | 1 << 2);
#endif
    return words[0] + words[1]; // bug
}
