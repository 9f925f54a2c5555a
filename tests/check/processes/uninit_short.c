/* A block is read from memory. The bug reads a part, and uses all of it. */
#include <nfp.h>

__process void sum(void) {
    uint32_t block[16];
#ifdef BUG
    nfp_read(block, nfp_ctm(0), 32);
#else
    nfp_read(block, nfp_ctm(0), 64);
#endif
    for (uint32_t i = 0; i < 16; i++)
        if (block[i] == 0) nfp_fetch_add(nfp_cls(0), 1); // bug
}
