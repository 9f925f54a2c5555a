/* Functions of the library that is loaded into processes, for the library that offloads MPI's collective operations.
 * Programs do not use these functions. */

#ifndef NICETY_OFFLOAD_BASE_H
#define NICETY_OFFLOAD_BASE_H

#include "portals4.h"

#include <stdint.h>

enum { OFFLOAD_BCAST, OFFLOAD_BARRIER, OFFLOAD_ALLREDUCE, OFFLOAD_COLLECTIVES };

/* Reasons for leaving a call to MPI. crates/exec/src/offload.rs has their names. */
enum {
    PASS_COMMUNICATOR, /* the communicator has not all ranks of MPI_COMM_WORLD in their order. */
    PASS_DATATYPE,     /* a reduction of a type without handlers. */
    PASS_OPERATOR,     /* a reduction with an operator without handlers. */
    PASS_LENGTH,       /* a vector that is longer than the card's memory for vectors. */
    PASS_EMPTY,        /* no bytes. */
    PASS_ARGUMENTS,    /* invalid arguments, which MPI reports. */
    PASS_ALONE,        /* a single process. */
    PASS_SET_UP,       /* the card has no room for the handlers or their entries. */
    PASS_COST,         /* MPI is faster. */
    PASS_REASONS
};

/* The counts of a process, in the page that it shares with the simulator. */
struct nicety_offload {
    uint64_t offloaded_calls[OFFLOAD_COLLECTIVES];
    uint64_t offloaded_bytes[OFFLOAD_COLLECTIVES];
    uint64_t fallback_calls[OFFLOAD_COLLECTIVES][PASS_REASONS];
    uint64_t set_up_ps; /* time for handlers and their entries */
};

#pragma GCC visibility push(default)

struct nicety_offload *nicety_offload_counts(void);

/* Returns the time of this rank, without the cost of reading a clock. */
uint64_t nicety_offload_now_ps(void);

/* Waits like PtlCTWait, but also returns if completions for MPI have arrived. It then returns PTL_CT_NONE_REACHED, and
 * the caller must let MPI handle the completions. */
int nicety_offload_await(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event);

/* Charges the CPU time of a copy. The caller itself copies the bytes. */
int nicety_offload_copy(uint64_t bytes);

/* Starts the library that offloads, if that library is loaded. Called when MPI has started. */
void nicety_offload_begin(void) __attribute__((weak));

/* Returns a function of MPI by its name, or NULL. `hiding` is the caller's own function of this name. */
void *nicety_mpi_function(const char *name, void *hiding);

#pragma GCC visibility pop

#endif
