/* The travelling salesman, by 2-opt with random restarts: the best tour of many climbs.
 *
 * A climb shuffles the cities. Then it makes the 2-opt move that shortens the tour most, until none does. A move
 * removes two roads from the tour, (i, i + 1) and (j, j + 1), and joins their ends the other way round.
 *
 * The manager reads jobs from the host over a channel: coordinates, and the number of climbs. Climbers take the numbers
 * of climbs from a counter in IMEM until none are left. Each has a place there for the shortest tour that it has found.
 * At the end the manager selects one of these, and sends the tour to the host. Of equally short tours it takes the one
 * with the lowest number, so that the result does not depend on the climber. There is one climber per microengine: its
 * cities and tour fill much of the local memory.
 *
 * Distances are those of TSPLIB's EUC_2D, rounded to the nearest integer. The processor has no square root. Either an
 * exact integer root is computed each time, or it is looked up in a table of all pairs in CLS. The climbers of an
 * island compute the table together at the start. */
#include "tsp.h"

static uint32_t city[TSP_CITIES];
static uint16_t road[TSP_CITIES]; /* road[k] joins the cities at k and k + 1 of the tour */
static uint8_t tour[TSP_CITIES];
static uint32_t cities;

/* In CLS: climbers of the island that have filled their part of the table, then the table. */
#define arrived ((volatile uint32_t *)NFP_CLS)
#define distances ((volatile uint16_t *)(NFP_CLS + NFP_TRANSFER))

#define BEGIN 0     /* the signal to climbers that there is a job */
#define FILLED 1    /* that the table is filled */
#define FINISHED 2  /* to the manager, that all climbs are made */

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

NFP_INLINE uint32_t distance(uint32_t a, uint32_t b, bool by_table) {
    return by_table ? distances[a * cities + b] : computed(city[a], city[b]);
}

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

NFP_INLINE void measure(uint32_t from, uint32_t to, bool by_table) {
    for (uint32_t k = from; k <= to; k++)
        road[k] = (uint16_t)distance(tour[k], tour[k + 1 < cities ? k + 1 : 0], by_table);
}

/* Climbs from a random tour to one that no 2-opt move shortens. Returns its length. */
NFP_INLINE uint32_t climb(bool by_table) {
    shuffle();
    measure(0, cities - 1, by_table);
    for (;;) {
        int32_t most = 0;
        uint32_t first = 0, last = 0;
        for (uint32_t i = 0; i + 2 < cities; i++) {
            uint32_t a = tour[i], b = tour[i + 1];
            uint32_t end = i > 0 ? cities : cities - 1; /* the roads at i and j share no city */
            for (uint32_t j = i + 2; j < end; j++) {
                uint32_t c = tour[j], d = tour[j + 1 < cities ? j + 1 : 0];
                int32_t saved = road[i] + road[j] - (int32_t)distance(a, c, by_table) - (int32_t)distance(b, d, by_table);
                if (saved > most) {
                    most = saved;
                    first = i;
                    last = j;
                }
            }
        }
        if (most == 0) break;
        reverse(first + 1, last);
        measure(first, last, by_table);
    }
    uint32_t length = 0;
    for (uint32_t k = 0; k < cities; k++) length += road[k];
    return length;
}

/* Computes every `members`-th row of the table from `member` on, and waits until the others of the island, on the
 * microengines from `first` on, have computed theirs. */
static void fill_table(uint32_t first, uint32_t member, uint32_t members) {
    for (uint32_t a = member; a < cities; a += members)
        for (uint32_t b = 0; b < cities; b++) distances[a * cities + b] = (uint16_t)computed(city[a], city[b]);
    if (nfp_fetch_add(arrived, 1) + 1 == members) {
        *arrived = 0; /* for the next job */
        for (uint32_t m = 0; m < members; m++) nfp_signal(first + m, 0, FILLED);
    }
    nfp_wait_all(1 << FILLED);
}

/* Copies between local memory and a memory in the necessary number of references. */
static void read_all(void *local, const volatile void *memory, uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at += NFP_TRANSFER) {
        uint32_t left = bytes - at;
        nfp_read((char *)local + at, (const volatile char *)memory + at, left < NFP_TRANSFER ? left : NFP_TRANSFER);
    }
}

static void write_all(volatile void *memory, const void *local, uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at += NFP_TRANSFER) {
        uint32_t left = bytes - at;
        nfp_write((volatile char *)memory + at, (const char *)local + at, left < NFP_TRANSFER ? left : NFP_TRANSFER);
    }
}

/* Makes climbs of a job until none is left. */
static void climb_all(volatile tsp_job_t *job, uint32_t climber, uint32_t first, uint32_t members) {
    uint32_t climbs = job->order.climbs, first_climb = job->order.first, seed = job->order.seed;
    bool by_table = job->order.table;
    tsp_found_t found = {~0u, 0};
    cities = job->order.cities;
    read_all(city, job->order.city, 4 * cities);
    if (by_table) fill_table(first, nfp_microengine() - first, members);
    for (;;) {
        uint32_t taken = nfp_fetch_add(&job->next, 1);
        if (taken >= climbs) break; /* more climbers than remaining climbs */
        uint32_t number = first_climb + taken;
        random_state = nfp_crc32(seed, number) | 1;
        uint32_t length = by_table ? climb(true) : climb(false);
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
        if (nfp_fetch_add(&job->done, 1) + 1 == job->order.climbers) nfp_signal(TSP_MANAGER, 0, FINISHED);
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
