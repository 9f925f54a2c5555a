/* tsp_climb.h: the climbs of tsp.c and tsp_table.c, and their processes. The two programs differ in their distances.
 *
 * A climb shuffles the cities. Then it makes the 2-opt move that shortens the tour most, until none does. A move
 * removes two roads from the tour, (i, i + 1) and (j, j + 1), and joins their ends the other way round.
 *
 * The manager reads jobs from the host over a channel: distances, and the number of climbs. Climbers take the numbers
 * of climbs from a counter in IMEM until none are left. Each has a place there for the shortest tour that it has found.
 * At the end the manager selects one of these, and sends the tour to the host. Of equally short tours it takes the one
 * with the lowest number, so that the result does not depend on the climber. There is one climber per microengine: its
 * cities and tour fill much of the local memory.
 *
 * A program defines road_t, an integer type for a road, before it includes this file, and then the functions below. It
 * has two ways to find a distance. `kind`, one of them, is a constant in a climb, so that no loop tests it. */
#ifndef TSP_CLIMB_H
#define TSP_CLIMB_H

#include "tsp.h"

static uint32_t cities;

/* The kind of distances of a job. */
NFP_INLINE bool kind_of(volatile tsp_job_t *job);
/* Receives the messages that follow the order, at the manager. Returns the error of a failed channel. */
NFP_INLINE int32_t receive_distances(volatile tsp_job_t *job, uint32_t target);
/* Prepares the distances of a job, at a climber. `first` and `members` are those of tsp_climber. */
NFP_INLINE void take_distances(volatile tsp_job_t *job, uint32_t first, uint32_t members, bool kind);
NFP_INLINE uint32_t distance(uint32_t a, uint32_t b, bool kind);

static road_t road[TSP_CITIES]; /* road[k] joins the cities at k and k + 1 of the tour */
static uint8_t tour[TSP_CITIES];

/* In CLS: climbers of the island that have filled their part of a table. */
#define arrived ((volatile uint32_t *)NFP_CLS)

#define BEGIN 0     /* the signal to climbers that there is a job */
#define FILLED 1    /* that the table is filled */
#define FINISHED 2  /* to the manager, that all climbs are made */

static uint32_t random_state;

/* Returns a number below `bound`, uniform up to one part in 2^32 / bound. */
static uint32_t random_below(uint32_t bound) {
    uint32_t x = random_state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    random_state = x;
    return (uint32_t)((uint64_t)x * bound >> 32);
}

static void shuffle(void) {
    for (uint32_t k = 0; k < cities; k++) tour[k] = (uint8_t)k;
    for (uint32_t k = cities - 1; k > 0; k--) {
        uint32_t other = random_below(k + 1);
        uint8_t kept = tour[k];
        tour[k] = tour[other];
        tour[other] = kept;
    }
}

/* Reverses the cities from `from` to `to`. */
static void reverse(uint32_t from, uint32_t to) {
    for (; from < to; from++, to--) {
        uint8_t kept = tour[from];
        tour[from] = tour[to];
        tour[to] = kept;
    }
}

NFP_INLINE void measure(uint32_t from, uint32_t to, bool kind) {
    for (uint32_t k = from; k <= to; k++)
        road[k] = (road_t)distance(tour[k], tour[k + 1 < cities ? k + 1 : 0], kind);
}

/* Climbs from a random tour to one that no 2-opt move shortens. Returns its length. */
NFP_INLINE uint32_t climb(bool kind) {
    shuffle();
    measure(0, cities - 1, kind);
    for (;;) {
        int32_t most = 0;
        uint32_t first = 0, last = 0;
        for (uint32_t i = 0; i + 2 < cities; i++) {
            uint32_t a = tour[i], b = tour[i + 1];
            uint32_t end = i > 0 ? cities : cities - 1; /* the roads at i and j share no city */
            for (uint32_t j = i + 2; j < end; j++) {
                uint32_t c = tour[j], d = tour[j + 1 < cities ? j + 1 : 0];
                int32_t saved = road[i] + road[j] - (int32_t)distance(a, c, kind) - (int32_t)distance(b, d, kind);
                if (saved > most) {
                    most = saved;
                    first = i;
                    last = j;
                }
            }
        }
        if (most == 0) break;
        reverse(first + 1, last);
        measure(first, last, kind);
    }
    uint32_t length = 0;
    for (uint32_t k = 0; k < cities; k++) length += road[k];
    return length;
}

/* Waits until the climbers of the island, on the microengines from `first` on, have filled their parts of a table. */
NFP_INLINE void wait_for_island(uint32_t first, uint32_t members) {
    if (nfp_fetch_add(arrived, 1) + 1 == members) {
        *arrived = 0; /* for the next job */
        for (uint32_t m = 0; m < members; m++) nfp_signal(first + m, 0, FILLED);
    }
    nfp_wait_all(1 << FILLED);
}

/* Copies from local memory to a memory in the necessary number of references. */
static void write_all(volatile void *memory, const void *local, uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at += NFP_TRANSFER) {
        uint32_t left = bytes - at;
        nfp_write((volatile char *)memory + at, (const char *)local + at, left < NFP_TRANSFER ? left : NFP_TRANSFER);
    }
}

/* Makes climbs of a job until none is left. */
static void climb_all(volatile tsp_job_t *job, uint32_t climber, uint32_t first, uint32_t members) {
    uint32_t climbs = job->order.climbs, first_climb = job->order.first, seed = job->order.seed;
    bool kind = kind_of(job);
    tsp_found_t found = {~0u, 0};
    cities = job->order.cities;
    take_distances(job, first, members, kind);
    for (;;) {
        uint32_t taken = nfp_fetch_add(&job->next, 1);
        if (taken >= climbs) break; /* more climbers than remaining climbs */
        uint32_t number = first_climb + taken;
        random_state = nfp_crc32(seed, number) | 1;
        uint32_t length = kind ? climb(true) : climb(false);
        if (length < found.length) {
            found.length = length;
            found.number = number;
            write_all(job->tour[climber], tour, cities);
        }
    }
    nfp_write(&job->found[climber], &found, sizeof found);
}

/* Climbs as number `climber`, for ever. It is one of `members` of the island, with the first on microengine `first`. */
__process void tsp_climber(volatile tsp_job_t *job, uint32_t climber, uint32_t first, uint32_t members) {
    for (;;) {
        nfp_wait_all(1 << BEGIN);
        climb_all(job, climber, first, members);
        uint32_t climbers = job->order.climbers; /* before the end: the manager may take the next order then */
        if (nfp_fetch_add(&job->done, 1) + 1 == climbers) nfp_signal(TSP_MANAGER, 0, FINISHED);
    }
}

/* Returns the climber with the shortest tour, and of equally short ones that with the lowest number. */
static uint32_t choose(volatile tsp_job_t *job, uint32_t climbers, tsp_found_t *best) {
    uint32_t whose = 0;
    for (uint32_t climber = 0; climber < climbers; climber++) {
        tsp_found_t found;
        nfp_read(&found, &job->found[climber], sizeof found);
        if (climber == 0 || found.length < best->length ||
            (found.length == best->length && found.number < best->number)) {
            *best = found;
            whose = climber;
        }
    }
    return whose;
}

/* Takes jobs from the host for ever. Returns the error of a failed channel. */
__process int32_t tsp_manager(volatile tsp_job_t *job, uint32_t target) {
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK) {
        result = channel_read_ind(target, &job->order, sizeof job->order);
        if (result == CHANNEL_OK) result = receive_distances(job, target);
        if (result != CHANNEL_OK) break;
        uint32_t climbers = job->order.climbers;
        job->next = 0;
        job->done = 0;
        for (uint32_t climber = 0; climber < climbers; climber++) nfp_signal(TSP_MANAGER + 1 + climber, 0, BEGIN);
        nfp_wait_all(1 << FINISHED);
        tsp_found_t best;
        uint32_t whose = choose(job, climbers, &best);
        result = channel_write(target, &best, sizeof best);
        if (result == CHANNEL_OK) result = channel_write_ind(target, job->tour[whose], job->order.cities);
    }
    return result;
}

#endif
