/* A process reads a message into a memory. The bug names the scratch, which DMA does not reach. */
#include <nfp.h>

__process int32_t take(void) {
    channel_register(7);
#ifdef BUG
    return channel_read_ind(7, nfp_cls(0), 4096); // bug
#else
    return channel_read_ind(7, nfp_ctm(0), 4096);
#endif
}
