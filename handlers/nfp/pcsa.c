/* How many distinct addresses went by? Probabilistic counting with stochastic averaging (Flajolet and Martin, 1985).
 *
 * Each island keeps SKETCHES words in its CLS. An address is hashed by a CRC-32; the low bits of the hash choose a
 * sketch, and the run of ones that the others end with sets a bit of it: bit 0 for every second address, bit 1 for
 * every fourth, and so on. With R the trailing ones of a sketch, about SKETCHES / 0.77351 x 2^(mean of R)
 * distinct addresses have set them. The card sends the sum of all R, and whoever divides does so on the host.
 *
 * Any number of contexts count at the same time. */
#include <nfp.h>

#ifndef INDEX_BITS
#define INDEX_BITS 11 /* of the hash, to choose a sketch: 4 at least, and as many as CLS has room for */
#endif
#define SKETCHES (1u << INDEX_BITS)

#define sketches ((volatile uint32_t *)NFP_CLS)

/* Counts one address: two references, the second only where the bit is new. A set bit stays set, so that a look
 * beforehand is safe, and the atomic operation loses no bit that another context sets in between. */
NFP_INLINE void update(uint32_t address) {
    uint32_t hash = nfp_crc32(0, address);
    volatile uint32_t *sketch = &sketches[hash & (SKETCHES - 1)];
    uint32_t rest = hash >> INDEX_BITS;
    uint32_t bit = ~rest & (rest + 1); /* the lowest bit that is zero: behind the trailing ones */
    if (!(*sketch & bit)) nfp_fetch_set(sketch, bit);
}

/* Counts `count` addresses that lie in a memory from `addresses` on. */
__process void pcsa_count(const volatile uint32_t *addresses, uint32_t count) {
    uint32_t block[NFP_TRANSFER / 4];
    while (count > 0) {
        uint32_t now = count < NFP_TRANSFER / 4 ? count : NFP_TRANSFER / 4;
        nfp_read(block, addresses, 4 * now);
        for (uint32_t i = 0; i < now; i++) update(block[i]);
        addresses += now;
        count -= now;
    }
}

/* Adds the sketches of this island to those at `merged`, in a memory that all islands reach. */
__process void pcsa_merge(volatile uint32_t *merged) {
    uint32_t block[NFP_TRANSFER / 4];
    for (uint32_t i = 0; i < SKETCHES; i += NFP_TRANSFER / 4) {
        nfp_read(block, &sketches[i], NFP_TRANSFER);
        for (uint32_t k = 0; k < NFP_TRANSFER / 4; k++)
            if (block[k]) nfp_fetch_set(&merged[i + k], block[k]);
    }
}

/* The sum of the trailing ones of the sketches at `from`. */
__process uint32_t pcsa_sum(const volatile uint32_t *from) {
    uint32_t block[NFP_TRANSFER / 4], sum = 0;
    for (uint32_t i = 0; i < SKETCHES; i += NFP_TRANSFER / 4) {
        nfp_read(block, &from[i], NFP_TRANSFER);
        for (uint32_t k = 0; k < NFP_TRANSFER / 4; k++) sum += ~block[k] ? (uint32_t)__builtin_ctz(~block[k]) : 32;
    }
    return sum;
}
