/* The travelling salesman, by 2-opt with random restarts: the best tour of many climbs, with the host's distances.
 *
 * tsp_climb.h has the climbs. The host sends a table of the distances of all pairs of cities, so that they may be of
 * any kind. It arrives in IMEM or EMEM. If CLS or CTM holds it, the climbers of an island copy it there together at the
 * start. */
#include <stdint.h>

typedef uint32_t road_t;
#include "tsp_climb.h"

static uint32_t looked_up; /* the address of the table */

/* Two kinds of distances: of two bytes, and of four. */
NFP_INLINE bool kind_of(volatile tsp_job_t *job) { return job->order.table == sizeof(uint16_t); }

NFP_INLINE uint32_t distance(uint32_t a, uint32_t b, bool two_bytes) {
    uintptr_t table = looked_up;
    return two_bytes ? ((volatile uint16_t *)table)[a * cities + b] : ((volatile uint32_t *)table)[a * cities + b];
}

/* Copies every `members`-th part of the table from `member` on, and waits for the others of the island. */
static void copy_table(uint32_t received, uint32_t bytes, uint32_t first, uint32_t member, uint32_t members) {
    for (uint32_t at = member * NFP_TRANSFER; at < bytes; at += members * NFP_TRANSFER) {
        uint32_t part[NFP_TRANSFER / sizeof(uint32_t)];
        nfp_read(part, (const volatile void *)(uintptr_t)(received + at), NFP_TRANSFER);
        nfp_write((volatile void *)(uintptr_t)(looked_up + at), part, NFP_TRANSFER);
    }
    wait_for_island(first, members);
}

NFP_INLINE void take_distances(volatile tsp_job_t *job, uint32_t first, uint32_t members, bool two_bytes) {
    (void)two_bytes;
    uint32_t received = job->order.received;
    looked_up = job->order.looked_up;
    if (looked_up != received) copy_table(received, job->order.bytes, first, nfp_microengine() - first, members);
}

NFP_INLINE int32_t receive_distances(volatile tsp_job_t *job, uint32_t target) {
    return channel_read_ind(target, (volatile void *)(uintptr_t)job->order.received, job->order.bytes);
}
