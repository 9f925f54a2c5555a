/* tsp.h: a travelling salesman's job in IMEM. */
#ifndef TSP_H
#define TSP_H

#include <nfp.h>

#define TSP_CITIES 256    /* the maximum number */
#define TSP_CLIMBERS 64   /* the maximum number */

#define TSP_MANAGER 0     /* the manager's microengine; the climbers' microengines follow */

/* The host's order: a bulk message. For tsp_table.c, a second one follows with the distances of all pairs of cities, by
 * rows. Each is below 2^30. */
typedef struct {
    uint32_t cities;      /* number of cities, at least 5 */
    uint32_t climbs;      /* number of climbs to make */
    uint32_t first;       /* the number of the first climb */
    uint32_t seed;
    uint32_t table;       /* For tsp.c: 0 computes distances, 1 reads a table in CLS that climbers fill.
                           * For tsp_table.c: the bytes of a distance in the host's table, 2 or 4. */
    uint32_t climbers;    /* processes that climb */
    uint32_t received;    /* for tsp_table.c: the address at which the table arrives, in IMEM or EMEM */
    uint32_t looked_up;   /* the address at which climbers look distances up: the same, or in CLS or CTM */
    uint32_t bytes;       /* the size of the table, a multiple of NFP_TRANSFER */
    uint32_t unused[7];
    uint32_t city[TSP_CITIES];   /* x + 65536 y, both below 32768; not used by tsp_table.c */
} tsp_order_t;

/* A tour that was found. The host gets this struct for the shortest tour in a direct message. It then gets the tour's
 * cities in a bulk message. */
typedef struct {
    uint32_t length;      /* the tour's length, or all ones without a tour */
    uint32_t number;      /* number of the climb that found the tour */
} tsp_found_t;

typedef struct {
    tsp_order_t order;
    uint32_t next;        /* number of climbs handed out */
    uint32_t done;        /* number of climbers that found no more work */
    uint32_t unused[14];
    tsp_found_t found[TSP_CLIMBERS];          /* the shortest tour of each climber */
    uint8_t tour[TSP_CLIMBERS][TSP_CITIES];   /* the cities of this tour */
} tsp_job_t;

#endif
