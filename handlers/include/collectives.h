/* collectives.h: definitions that the handlers of `nicety exec --offload` and the host's library share. The host's
 * library (shim/offload_card.c) also includes this file. */
#ifndef NICETY_COLLECTIVES_H
#define NICETY_COLLECTIVES_H

#include <stdint.h>

/* Match bits. The messages of a barrier have no bytes. Arrivals go up a binomial tree with rank 0 as its root, and the
 * release goes down the tree. There are two barriers. One is for the program, and the other limits the lead of a rank
 * over the others. */
#define COLLECTIVE_BARRIERS 2u
#define COLLECTIVE_ARRIVE 0x100u  /* + the barrier */
#define COLLECTIVE_RELEASE 0x200u /* + the barrier */
/* Contributions to a reduction go up the same tree. The result goes down like a broadcast. */
#define COLLECTIVE_REDUCE 0x300u
/* The bytes of a broadcast go into this slot of the receiver's memory. */
#define COLLECTIVE_SLOT 0x400u /* + the slot */

/* Operators and types of reductions. */
enum {
    COLLECTIVE_SUM,
    COLLECTIVE_PROD,
    COLLECTIVE_MIN,
    COLLECTIVE_MAX,
    COLLECTIVE_BAND,
    COLLECTIVE_BOR,
    COLLECTIVE_BXOR,
    COLLECTIVE_LAND,
    COLLECTIVE_LOR,
    COLLECTIVE_LXOR
};
enum {
    COLLECTIVE_INT8,
    COLLECTIVE_UINT8,
    COLLECTIVE_INT16,
    COLLECTIVE_UINT16,
    COLLECTIVE_INT32,
    COLLECTIVE_UINT32,
    COLLECTIVE_INT64,
    COLLECTIVE_UINT64,
    COLLECTIVE_FLOAT,
    COLLECTIVE_DOUBLE
};

/* The header data of a contribution: operator, type, and the slot of the result. */
#define COLLECTIVE_WHAT(op, type, slot) ((uint32_t)(op) | (uint32_t)(type) << 8 | (uint32_t)(slot) << 16)

/* The state of a barrier's arrivals and releases. */
typedef struct {
    uint32_t rank, ranks;
    uint32_t barrier;
    uint32_t expected; /* number of arrivals here: the own one, and one from each child */
    uint32_t arrived;
} collective_barrier_t;

/* The state of a slot. */
typedef struct {
    uint32_t rank, ranks;
    uint32_t slot;
    uint32_t root; /* root of the message of several packets that is in progress */
} collective_slot_t;

/* The state of reductions. This struct is followed by a segment per packet of the longest vector, and then by the
 * vector. */
typedef struct {
    uint32_t lock;
    uint32_t count; /* number of contributions */
} collective_segment_t;

typedef struct {
    uint32_t rank, ranks;
    uint32_t expected;     /* number of contributions to a segment: the own one, and one from each child */
    uint32_t packet_bytes; /* maximum payload of a packet, and the bytes of a segment */
    uint32_t slot_bytes;
    uint32_t vector; /* offset of the vector from the beginning of the state */
    uint32_t what;   /* the header data of the reduction in progress */
    uint32_t unused;
    collective_segment_t segments[];
} collective_reduce_t;

#endif
