/* tsp.h: a travelling salesman's job in IMEM. */
#ifndef TSP_H
#define TSP_H

#include <nfp.h>

#define TSP_CITIES 256    /* at most */
#define TSP_CLIMBERS 64   /* at most */

#define TSP_MANAGER 0     /* the manager's microengine; those of the climbers follow */

/* The host's order: a bulk message. */
typedef struct {
    uint32_t cities;      /* 5 at least */
    uint32_t climbs;      /* total number to be made */
    uint32_t first;       /* the number of the first one */
    uint32_t seed;
    uint32_t table;       /* distances: 0 computed, 1 looked up in a table in CLS */
    uint32_t climbers;    /* processes that climb */
    uint32_t unused[10];
    uint32_t city[TSP_CITIES];   /* x + 65536 y, both below 32768 */
} tsp_order_t;

/* A tour that was found. The host gets that of the shortest tour, a direct message, and then its cities, a bulk
 * message. */
typedef struct {
    uint32_t length;      /* all ones: none yet */
    uint32_t number;      /* number of the climb that found it */
} tsp_found_t;

typedef struct {
    tsp_order_t order;
    uint32_t next;        /* climbs handed out */
    uint32_t done;        /* climbers that have found no more work */
    uint32_t unused[14];
    tsp_found_t found[TSP_CLIMBERS];          /* the shortest of each climber */
    uint8_t tour[TSP_CLIMBERS][TSP_CITIES];   /* and its cities */
} tsp_job_t;

#endif
