/* A process polls a flag in memory. The bug sets the flag before the value. */
#include <nfp.h>

typedef struct {
    uint32_t ready, value;
} box_t;

__process void publish(void) {
    volatile box_t *box = nfp_emem(4096);
#ifdef BUG
    box->ready = 1;
    box->value = 9; // bug
#else
    box->value = 9;
    box->ready = 1;
#endif
}

__process uint32_t use(void) {
    volatile box_t *box = nfp_emem(4096);
    while (box->ready == 0) nfp_yield();
    return box->value; // bug
}
