/* A process keeps a block on its stack of 512 bytes. The bug's block is larger. */
#include <nfp.h>

#ifdef BUG
#define WORDS 192
#else
#define WORDS 64
#endif

__process uint32_t deep(uint32_t value) { // bug
    volatile uint32_t block[WORDS];
    for (uint32_t i = 0; i < WORDS; i++) block[i] = value + i;
    return block[value];
}
