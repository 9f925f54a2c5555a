/* tsp.h: a travelling salesman's job, as it lies in IMEM. */
#ifndef TSP_H
#define TSP_H

#include <nfp.h>

#define TSP_CITIES 256    /* at most */
#define TSP_CLIMBERS 64   /* at most */

typedef struct {
    uint32_t cities;      /* 5 at least */
    uint32_t climbs;      /* to be made in all */
    uint32_t seed;
    uint32_t table;       /* distances: 0 computed, 1 looked up in a table in CLS */
    uint32_t climbers;    /* processes that climb */
    uint32_t manager;     /* the microengine whose context 0 is told when all are done */
    uint32_t first;       /* the number of the first climb */
    uint32_t next;        /* climbs handed out */
    uint32_t done;        /* climbers that have found no more work */
    uint32_t unused[7];
    uint32_t city[TSP_CITIES];                /* x + 65536 y, both below 32768 */
    struct {
        uint32_t length;  /* of the shortest tour; all ones: none yet */
        uint32_t number;  /* of the climb that found it */
    } found[TSP_CLIMBERS];                    /* by each climber */
    uint8_t tour[TSP_CLIMBERS][TSP_CITIES];   /* the shortest of each climber */
} tsp_job_t;

#endif
