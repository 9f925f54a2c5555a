/* Functions of the library that is loaded into processes for the one that offloads MPI's collective operations. Not for programs. */

#ifndef NICETY_OFFLOAD_BASE_H
#define NICETY_OFFLOAD_BASE_H

#include "portals4.h"

#include <stdint.h>

enum { OFFLOAD_BCAST, OFFLOAD_BARRIER, OFFLOAD_ALLREDUCE, OFFLOAD_COLLECTIVES };

/* Reasons for which a call is left to MPI. src/offload.rs has their names. */
enum {
    PASS_COMMUNICATOR, /* not of all ranks of MPI_COMM_WORLD in their order */
    PASS_DATATYPE,     /* a reduction of a type that handlers have no arithmetic for */
    PASS_OPERATOR,     /* nor this operator */
    PASS_LENGTH,       /* a vector longer than the card's memory for it */
    PASS_EMPTY,        /* no bytes */
    PASS_ARGUMENTS,    /* invalid, of which MPI tells */
    PASS_ALONE,        /* one process */
    PASS_SET_UP,       /* the card has no room for the handlers or their entries */
    PASS_COST,         /* MPI is quicker */
    PASS_REASONS
};

/* What a process has counted, in the page that it shares with the simulation. */
struct nicety_offload {
    uint64_t offloaded_calls[OFFLOAD_COLLECTIVES];
    uint64_t offloaded_bytes[OFFLOAD_COLLECTIVES];
    uint64_t passed_calls[OFFLOAD_COLLECTIVES][PASS_REASONS];
    uint64_t set_up_ps; /* that handlers and their entries have taken */
};

#pragma GCC visibility push(default)

struct nicety_offload *nicety_offload_counts(void);

/* The time of this rank, as it is. */
uint64_t nicety_offload_now_ps(void);

/* PtlCTWait that returns PTL_CT_NONE_REACHED as well, when something has come for MPI, which it is to take. */
int nicety_offload_await(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event);

/* Lets the CPU copy bytes: the time of that. The caller has copied them. */
int nicety_offload_copy(uint64_t bytes);

/* The library that offloads, if it is loaded: called when MPI has started. */
void nicety_offload_begin(void) __attribute__((weak));

/* A function of MPI by its name, or NULL; `hiding` is the caller's own of this name. */
void *nicety_mpi_function(const char *name, void *hiding);

#pragma GCC visibility pop

#endif
