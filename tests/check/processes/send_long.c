/* A direct message has 56 bytes at most. The bug sends 64. */
#include <nfp.h>

__process int32_t tell(void) {
    uint32_t words[16];
    for (uint32_t i = 0; i < 16; i++) words[i] = i;
    channel_register(7);
#ifdef BUG
    return channel_write(7, words, 64); // bug
#else
    return channel_write(7, words, 56);
#endif
}
