/* A message does not arrive in time. The bug uses its bytes without a look at the result. */
#include <nfp.h>

__process uint32_t hear(void) {
    uint32_t order[2];
    channel_register(7);
    int32_t result = channel_read_for(7, order, sizeof order, 2000);
#ifndef BUG
    if (result != CHANNEL_OK) return (uint32_t)result;
#endif
    (void)result;
    return order[0] > 5 ? *(volatile uint32_t *)nfp_ctm(0) : 0; // bug
}
