/* Counts distinct addresses by probabilistic counting with stochastic averaging (Flajolet and Martin, 1985).
 *
 * Each island keeps SKETCHES words, the sketches, in its CLS. An address is hashed by a CRC-32, and with MIXED by the
 * last steps of MurmurHash3 in addition. A CRC is linear: addresses in order are not as good as random ones. The low
 * bits of the hash select a sketch. The number of trailing ones of the other bits selects a bit of the sketch, and this bit is set.
 * It is bit 0 for every second address, bit 1 for every fourth, and so on. With R trailing ones in a sketch, about
 * SKETCHES / 0.77351 x 2^(mean of R) distinct addresses were counted. The card sends the sum of all R, and the host
 * divides the sum.
 *
 * Any number of contexts count concurrently. Addresses come
 *   - from packets: contexts take frames from the port, and find the source address themselves (pcsa_packets);
 *   - from the host: on each island one context, the feeder, reads blocks of addresses from a channel. The other
 *     contexts count the addresses while the next block arrives (pcsa_feeder, pcsa_worker);
 *   - from a memory (pcsa_count), or from local memory, shared by the contexts of a microengine (pcsa_share). */
#include <nfp.h>

#ifndef INDEX_BITS
#define INDEX_BITS 11 /* number of hash bits that select a sketch: at least 4, and at most those that fit CLS */
#endif
#define SKETCHES (1u << INDEX_BITS)

#define sketches ((volatile uint32_t *)NFP_CLS)

/* Returns the hash of an address. */
NFP_INLINE uint32_t hash_of(uint32_t address) {
    uint32_t hash = nfp_crc32(0, address);
#ifdef MIXED
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    hash ^= hash >> 16;
#endif
    return hash;
}

/* Counts one address by at most two references. The second reference is made only if the bit is new. A set bit stays
 * set, so a test beforehand is safe. The atomic operation loses no bit that another context sets in between. */
NFP_INLINE void update(uint32_t address) {
    uint32_t hash = hash_of(address);
    volatile uint32_t *sketch = &sketches[hash & (SKETCHES - 1)];
    uint32_t rest = hash >> INDEX_BITS;
    uint32_t bit = ~rest & (rest + 1); /* the lowest zero bit, after the trailing ones */
    if (!(*sketch & bit)) nfp_fetch_set(sketch, bit);
}

/* Counts `count` addresses in a memory at `addresses`. */
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

/* Addresses in local memory that the contexts of a microengine share, their number, and the number of the next address.
 * No context gives up the core between reading and advancing the next address, so no lock is necessary. */
#define GIVEN 256
uint32_t pcsa_given[GIVEN];
static volatile uint32_t given, next;

static void share(void) {
    for (;;) {
        uint32_t i = next;
        if (i >= given) return;
        next = i + 1;
        update(pcsa_given[i]);
    }
}

#define SHARE 3 /* the signal that there are addresses */

/* Starts the other contexts of the microengine on `count` addresses, and also counts addresses itself. */
__process void pcsa_share(uint32_t count, uint32_t contexts) {
    given = count;
    next = 0;
    uint32_t here = nfp_microengine();
    for (uint32_t context = 1; context < contexts; context++) nfp_signal(here, context, SHARE);
    share();
}

/* Runs another context, which waits for the start. */
__process void pcsa_sharer(void) {
    nfp_wait_all(1 << SHARE);
    share();
}

/* Adds sketches of this island to those at `merged`, in a memory that all islands can access. This worker adds every
 * `workers`-th part, from `worker` on. */
__process void pcsa_merge(volatile uint32_t *merged, uint32_t worker, uint32_t workers) {
    uint32_t block[NFP_TRANSFER / 4];
    for (uint32_t i = worker * (NFP_TRANSFER / 4); i < SKETCHES; i += workers * (NFP_TRANSFER / 4)) {
        nfp_read(block, &sketches[i], NFP_TRANSFER);
        for (uint32_t k = 0; k < NFP_TRANSFER / 4; k++)
            if (block[k]) nfp_fetch_set(&merged[i + k], block[k]);
    }
}

/* Returns the sum of the trailing ones of the sketches at `from`. */
__process uint32_t pcsa_sum(const volatile uint32_t *from) {
    uint32_t block[NFP_TRANSFER / 4], sum = 0;
    for (uint32_t i = 0; i < SKETCHES; i += NFP_TRANSFER / 4) {
        nfp_read(block, &from[i], NFP_TRANSFER);
        for (uint32_t k = 0; k < NFP_TRANSFER / 4; k++) sum += ~block[k] ? (uint32_t)__builtin_ctz(~block[k]) : 32;
    }
    return sum;
}

/* Maximum number of addresses of a block. This is 24 pages of the host, transferred as four lists of six pages. */
#define BLOCK 24576u

/* The contents of an island's CTM: the present work, and two blocks. One block is counted while the other is read. */
typedef struct {
    uint32_t taken;    /* number of addresses of the block that have been taken */
    uint32_t finished; /* number of workers that found no more addresses */
    uint32_t count;    /* number of addresses of the block; 0 to merge */
    uint32_t which;    /* number of the block */
    uint32_t unused[12];
    uint32_t address[2][BLOCK];
} island_t;

#define island ((volatile island_t *)NFP_CTM)

#define START 0  /* the signal to workers that there is work */
#define DONE 1   /* the signal to the feeder that the work is done */
#define MERGED 2 /* the signal to the first feeder that all islands are merged */

/* Counts the blocks of the island's feeder, for ever. */
__process void pcsa_worker(uint32_t feeder, uint32_t worker, uint32_t workers, volatile uint32_t *merged) {
    uint32_t block[NFP_TRANSFER / 4];
    for (;;) {
        nfp_wait_all(1 << START);
        uint32_t count = island->count, at;
        volatile const uint32_t *addresses = island->address[island->which];
        if (count == 0) pcsa_merge(merged, worker, workers);
        while ((at = nfp_fetch_add(&island->taken, NFP_TRANSFER / 4)) < count) {
            uint32_t now = count - at < NFP_TRANSFER / 4 ? count - at : NFP_TRANSFER / 4;
            nfp_read(block, &addresses[at], 4 * now);
            for (uint32_t i = 0; i < now; i++) update(block[i]);
        }
        if (nfp_fetch_add(&island->finished, 1) + 1 == workers) nfp_signal(feeder, 0, DONE);
    }
}

/* Starts the workers, which are all other contexts of the island's `members` microengines. The feeder is on the first
 * of these. */
static void start(uint32_t members, uint32_t contexts, uint32_t which, uint32_t count) {
    island->taken = 0;
    island->finished = 0;
    island->count = count;
    island->which = which;
    uint32_t first = nfp_microengine();
    for (uint32_t member = 0; member < members; member++)
        for (uint32_t context = 0; context < contexts; context++)
            if (member > 0 || context > 0) nfp_signal(first + member, context, START);
}

/* Takes blocks from the host, each after its number of addresses, until a number is zero. Then the sketches of all
 * islands are merged, and the feeder on microengine 0 sends the sum of their trailing ones. */
__process int32_t pcsa_feeder(uint32_t target, uint32_t members, uint32_t contexts, uint32_t islands,
                              volatile uint32_t *merged, volatile uint32_t *arrived) {
    int32_t result = channel_register(target);
    uint32_t count = 1, sum;
    for (uint32_t block = 0; count > 0; block++) {
        if (result == CHANNEL_OK) result = channel_read(target, &count, sizeof count);
        if (result == CHANNEL_OK && count > 0)
            result = channel_read_ind(target, island->address[block % 2], 4 * count);
        if (result != CHANNEL_OK) return result;
        if (block > 0) nfp_wait_all(1 << DONE);
        start(members, contexts, block % 2, count);
    }
    nfp_wait_all(1 << DONE);
    if (nfp_fetch_add(arrived, 1) + 1 == islands) nfp_signal(0, 0, MERGED);
    if (nfp_microengine() != 0) return CHANNEL_OK;
    nfp_wait_all(1 << MERGED);
    sum = pcsa_sum(merged);
    return channel_write(target, &sum, sizeof sum);
}

/* Packets of the port. The counts by kind follow the merged sketches and `arrived` in IMEM. A word for the end frame
 * follows, with the number of packets that the port took before the end frame. */
enum { IPV4, IPV6, OTHER, KINDS };
#define ENDED 4 /* the signal to the first collector that the end frame has arrived */
#define MERGE 5 /* the signal to the other collectors that all packets are counted */
#define END_OF_REPLAY 0x88b5u /* an EtherType for experiments (IEEE 802) */

NFP_INLINE uint32_t half(const uint32_t *head, uint32_t at) {
    const uint8_t *bytes = (const uint8_t *)head + at;
    return (uint32_t)bytes[0] << 8 | bytes[1];
}

/* Returns an IPv6 address as a word: MurmurHash3 of the 16 bytes, from seed 0. */
static uint32_t folded(const uint32_t *words) {
    uint32_t hash = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t word = words[i] * 0xcc9e2d51u;
        word = (word << 15 | word >> 17) * 0x1b873593u;
        hash ^= word;
        hash = (hash << 13 | hash >> 19) * 5 + 0xe6546b64u;
    }
    hash ^= 16;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

/* Counts the source address of a packet with `have` bytes in `head`, and returns the packet's kind. */
NFP_INLINE uint32_t count_source(const uint32_t *head, uint32_t have, uint32_t type) {
    uint32_t at = 0;
    while ((type == 0x8100 || type == 0x88a8 || type == 0x9100) && at + 4 <= have) {
        type = half(head, at + 2);
        at += 4;
    }
    if ((type != 0x0800 && type != 0x86dd) || at >= have) return OTHER;
    switch (((const uint8_t *)head)[at] >> 4) {
    case 4:
        if (at + 20 > have) return OTHER;
        update(head[(at + 12) / 4]);
        return IPV4;
    case 6:
        if (at + 40 > have) return OTHER;
        update(folded(&head[(at + 8) / 4]));
        return IPV6;
    default:
        return OTHER;
    }
}

/* Takes frames for ever, and counts the source addresses of their packets. */
__process int32_t pcsa_packets(volatile uint32_t *arrived) {
    uint32_t head[NFP_ETH_HEAD / 4], source;
    for (;;) {
        int32_t bytes = nfp_eth_receive(head, sizeof head, &source);
        if (bytes < 0) return bytes;
        uint32_t type = nfp_eth_type();
        nfp_eth_move(NULL, 0, 0);
        if (type == END_OF_REPLAY) {
            arrived[1 + KINDS] = head[0];
            nfp_signal(0, 0, ENDED);
            continue;
        }
        uint32_t have = (uint32_t)bytes < NFP_ETH_HEAD ? (uint32_t)bytes : NFP_ETH_HEAD;
        nfp_fetch_add(&arrived[1 + count_source(head, have, type)], 1);
    }
}

/* The collector of an island. When all packets are counted, it adds the island's sketches to the merged sketches. The
 * first collector notifies the others. It also sends the sum of the trailing ones and the number of packets of each
 * kind to the host. */
__process int32_t pcsa_collector(uint32_t target, uint32_t islands, uint32_t island_size, volatile uint32_t *merged,
                                 volatile uint32_t *arrived) {
    uint32_t result[1 + KINDS];
    if (nfp_microengine() != 0) {
        nfp_wait_all(1 << MERGE);
    } else {
        int32_t registered = channel_register(target);
        if (registered != CHANNEL_OK) return registered;
        nfp_wait_all(1 << ENDED);
        uint32_t frames = arrived[1 + KINDS];
        do nfp_read(result, arrived, sizeof result);
        while (result[1 + IPV4] + result[1 + IPV6] + result[1 + OTHER] != frames);
        for (uint32_t other = 1; other < islands; other++) nfp_signal(other * island_size, 0, MERGE);
    }
    pcsa_merge(merged, 0, 1);
    if (nfp_fetch_add(arrived, 1) + 1 == islands) nfp_signal(0, 0, MERGED);
    if (nfp_microengine() != 0) return CHANNEL_OK;
    nfp_wait_all(1 << MERGED);
    result[0] = pcsa_sum(merged);
    return channel_write(target, result, sizeof result);
}
