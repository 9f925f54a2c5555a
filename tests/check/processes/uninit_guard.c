/* A selection of two targets. The bug fills one guard. */
#include <nfp.h>

__process int32_t either(void) {
    uint32_t message[2];
    struct channel_guard guards[2];
    channel_register(7);
    channel_register(8);
    guards[0] = (struct channel_guard){7, message, sizeof message, 0, 0};
#ifndef BUG
    guards[1] = (struct channel_guard){8, message, sizeof message, 0, 0};
#endif
    __asm__ volatile("" : : "r"(guards) : "memory");
    return channel_select(guards, 2); // bug
}
