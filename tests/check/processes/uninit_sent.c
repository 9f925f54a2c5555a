/* A message has four words. The bug gives values to three. */
#include <nfp.h>

__process int32_t tell(void) {
    uint32_t words[4];
    channel_register(7);
#ifdef BUG
    for (uint32_t i = 0; i < 3; i++) words[i] = i;
#else
    for (uint32_t i = 0; i < 4; i++) words[i] = i;
#endif
    return channel_write(7, words, sizeof words); // bug
}
