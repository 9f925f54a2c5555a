/* The travelling salesman, by 2-opt with random restarts: the best tour of many climbs, with distances of EUC_2D.
 *
 * tsp_climb.h has the climbs. The host sends coordinates. Distances are those of TSPLIB's EUC_2D, rounded to the
 * nearest integer. The processor has no square root. Either an exact integer root is computed each time, or it is
 * looked up in a table of all pairs in CLS. The climbers of an island compute the table together at the start. */
#include <stdint.h>

typedef uint16_t road_t;
#include "tsp_climb.h"

static uint32_t city[TSP_CITIES];

/* In CLS behind `arrived`. */
#define distances ((volatile uint16_t *)(NFP_CLS + NFP_TRANSFER))

/* Returns the square root, rounded to nearest, one bit at a time: root and rest always satisfy root^2 + rest =
 * square. */
static uint32_t rounded_root(uint32_t square) {
    if (square == 0) return 0;
    uint32_t root = 0, rest = square;
    for (uint32_t bit = 1u << ((31 - __builtin_clz(square)) & ~1); bit; bit >>= 2) {
        uint32_t next = root + bit;
        root >>= 1;
        if (rest >= next) {
            rest -= next;
            root += bit;
        }
    }
    return root + (rest > root); /* (root + 1/2)^2 = root^2 + root + 1/4 */
}

NFP_INLINE uint32_t computed(uint32_t a, uint32_t b) {
    int32_t dx = (int32_t)(a & 0xffff) - (int32_t)(b & 0xffff), dy = (int32_t)(a >> 16) - (int32_t)(b >> 16);
    return rounded_root((uint32_t)(dx * dx) + (uint32_t)(dy * dy));
}

/* Two kinds of distances: looked up in the table, and computed. */
NFP_INLINE bool kind_of(volatile tsp_job_t *job) { return job->order.table; }

NFP_INLINE uint32_t distance(uint32_t a, uint32_t b, bool by_table) {
    return by_table ? distances[a * cities + b] : computed(city[a], city[b]);
}

/* Computes every `members`-th row of the table from `member` on, and waits for the others of the island. */
static void fill_table(uint32_t first, uint32_t member, uint32_t members) {
    for (uint32_t a = member; a < cities; a += members)
        for (uint32_t b = 0; b < cities; b++) distances[a * cities + b] = (uint16_t)computed(city[a], city[b]);
    wait_for_island(first, members);
}

/* Copies from a memory to local memory in the necessary number of references. */
static void read_all(void *local, const volatile void *memory, uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at += NFP_TRANSFER) {
        uint32_t left = bytes - at;
        nfp_read((char *)local + at, (const volatile char *)memory + at, left < NFP_TRANSFER ? left : NFP_TRANSFER);
    }
}

NFP_INLINE void take_distances(volatile tsp_job_t *job, uint32_t first, uint32_t members, bool by_table) {
    read_all(city, job->order.city, 4 * cities);
    if (by_table) fill_table(first, nfp_microengine() - first, members);
}

/* The order has all. */
NFP_INLINE int32_t receive_distances(volatile tsp_job_t *job, uint32_t target) {
    (void)job, (void)target;
    return CHANNEL_OK;
}
