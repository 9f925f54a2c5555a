/* A process clears the scratch of its island. The bug goes on behind its end. */
#include <nfp.h>

__process void clear(uint32_t bytes) {
#ifdef BUG
    uint32_t end = bytes + 4;
#else
    uint32_t end = bytes;
#endif
    for (uint32_t at = 65472; at < end; at += 4) *(volatile uint32_t *)nfp_cls(at) = 0; // bug
}
