/* MPI_Bcast, MPI_Barrier and MPI_Allreduce in front of MPI's own functions. The card executes the supported calls, and
 * MPI executes all others. This library is loaded into ranks before all other libraries. NICETY_OFFLOAD names the
 * operations. */

#include "offload_base.h"
#include "offload_card.h"
#include "offload_mpi.h"

#include "collectives.h"
#include "nicety_exec.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define MPI_ERR_OTHER 15

static struct nicety_offload *counts;
static int is_wanted[OFFLOAD_COLLECTIVES];
/* The reason why no call is offloaded, or OFFLOADS. */
enum { OFFLOADS = -1 };
static int state = PASS_SET_UP;
static int64_t longest;
/* The greatest length at which the card is faster than MPI, by operator and type. */
enum { OPERATORS = COLLECTIVE_LXOR + 1, TYPES = COLLECTIVE_DOUBLE + 1 };
static int64_t limits[OPERATORS][TYPES];

/* ---- start ---- */

static void failed(const char *what) {
    fprintf(stderr, "nicety: rank %u: %s on the card has failed: %s\n", nicety_exec_rank(), what, nicety_reason());
    mpi.Abort(mpi_world(), 1);
    abort();
}

static void find(void) {
    static int is_found;
    if (!is_found && !mpi_find()) {
        fprintf(stderr, "nicety: --offload: no functions of MPI were found in the program\n");
        exit(126);
    }
    is_found = 1;
}

static void read_wanted(void) {
    static const char *const names[] = {"bcast", "barrier", "allreduce"};
    const char *wanted = getenv("NICETY_OFFLOAD");
    char *text = strdup(wanted ? wanted : ""), *place = NULL;
    for (char *word = strtok_r(text, ",", &place); word; word = strtok_r(NULL, ",", &place))
        for (int i = 0; i < OFFLOAD_COLLECTIVES; i++)
            is_wanted[i] |= !strcmp(word, names[i]);
    free(text);
}

/* NICETY_OFFLOAD_LIMITS has all limits, separated by commas. Without this variable there are no limits. */
static void read_limits(void) {
    const char *text = getenv("NICETY_OFFLOAD_LIMITS");
    for (int i = 0; i < OPERATORS * TYPES; i++) {
        char *end = NULL;
        limits[i / TYPES][i % TYPES] = text ? strtoll(text, &end, 10) : INT64_MAX;
        text = text && *end ? end + 1 : text;
    }
}

/* Sets up offloading, on all ranks or on none. */
EXPORT void nicety_offload_begin(void) {
    int rank = -1, size = 0;
    counts = nicety_offload_counts();
    if (!counts)
        return;
    find();
    read_wanted();
    read_limits();
    mpi.Comm_rank(mpi_world(), &rank);
    mpi.Comm_size(mpi_world(), &size);
    if (size == 1) {
        state = PASS_ALONE;
        return;
    }
    const char *program = getenv("NICETY_OFFLOAD_PROGRAM"), *packet = getenv("NICETY_OFFLOAD_PACKET");
    int bytes = 0;
    uint64_t since = nicety_offload_now_ps();
    card_progress = mpi_progress;
    card_failed = failed;
    if (program && packet && (uint32_t)rank == nicety_exec_rank() && (uint32_t)size == nicety_exec_ranks())
        bytes = card_set_up(program, (uint32_t)strtoul(packet, NULL, 10));
    /* The reason is read before calls of MPI, because these set other reasons. */
    if (!bytes)
        fprintf(stderr, "nicety: --offload: rank %d: MPI executes all operations: %s\n", rank, nicety_reason());
    longest = mpi_least(bytes);
    counts->set_up_ps = nicety_offload_now_ps() - since;
    if (longest)
        state = OFFLOADS;
    else if (bytes)
        card_give_up();
}

/* ---- decisions about offloading ---- */

/* Counts a call. Returns whether it is offloaded. */
static int counted(int collective, int reason, int64_t bytes) {
    if (!counts)
        return 0;
    if (reason != OFFLOADS) {
        counts->fallback_calls[collective][reason]++;
        return 0;
    }
    counts->offloaded_calls[collective]++;
    counts->offloaded_bytes[collective] += (uint64_t)bytes;
    return 1;
}

static int reason_of(handle comm) {
    if (state != OFFLOADS)
        return state;
    if (mpi_is_null_communicator(comm))
        return PASS_ARGUMENTS;
    return mpi_is_of_all(comm) ? OFFLOADS : PASS_COMMUNICATOR;
}

/* Computes the number of bytes of a buffer. Offloading depends on this number, and not on the layout of the bytes,
 * because the layout may differ between ranks. */
static int reason_of_buffer(int64_t count, handle type, int64_t *bytes) {
    int64_t size = count < 0 || mpi_is_null_type(type) ? -1 : mpi_type_bytes(type);
    if (size < 0)
        return PASS_ARGUMENTS;
    if (__builtin_mul_overflow(count, size, bytes) || (!mpi.Pack_c && *bytes > INT_MAX))
        return PASS_LENGTH;
    return *bytes ? OFFLOADS : PASS_EMPTY;
}

static int broadcast(void *buffer, int64_t count, handle type, int root, handle comm, int64_t bytes) {
    if (mpi_is_packed(type)) {
        card_broadcast(buffer, (size_t)bytes, (uint32_t)root);
        return 0;
    }
    void *copy = malloc((size_t)bytes);
    if (!copy)
        return MPI_ERR_OTHER;
    int is_root = (uint32_t)root == nicety_exec_rank();
    int code = is_root ? mpi_pack(buffer, count, type, copy, bytes, comm) : 0;
    if (!code)
        card_broadcast(copy, (size_t)bytes, (uint32_t)root);
    if (!code && !is_root)
        code = mpi_unpack(copy, bytes, buffer, count, type, comm);
    free(copy);
    return code;
}

/* Returns whether the card executed a broadcast. */
static int bcast(void *buffer, int64_t count, handle type, int root, handle comm, int *code) {
    int64_t bytes = 0;
    if (!is_wanted[OFFLOAD_BCAST])
        return 0;
    int reason = reason_of(comm);
    if (reason == OFFLOADS && (root < 0 || (uint32_t)root >= nicety_exec_ranks()))
        reason = PASS_ARGUMENTS;
    if (reason == OFFLOADS)
        reason = reason_of_buffer(count, type, &bytes);
    if (!counted(OFFLOAD_BCAST, reason, bytes))
        return 0;
    *code = broadcast(buffer, count, type, root, comm, bytes);
    return 1;
}

static int allreduce(const void *from, void *to, int64_t count, handle type, handle op, handle comm) {
    int64_t bytes = 0;
    if (!is_wanted[OFFLOAD_ALLREDUCE])
        return 0;
    int reason = reason_of(comm);
    if (reason == OFFLOADS)
        reason = reason_of_buffer(count, type, &bytes);
    if (reason == OFFLOADS && mpi_operator(op) < 0)
        reason = PASS_OPERATOR;
    if (reason == OFFLOADS && mpi_type(type) < 0)
        reason = PASS_DATATYPE;
    if (reason == OFFLOADS && !mpi_reduces(op, type))
        reason = PASS_OPERATOR;
    if (reason == OFFLOADS && bytes > longest)
        reason = PASS_LENGTH;
    if (reason == OFFLOADS && bytes > limits[mpi_operator(op)][mpi_type(type)])
        reason = PASS_COST;
    if (!counted(OFFLOAD_ALLREDUCE, reason, bytes))
        return 0;
    card_reduce(mpi_is_in_place(from) ? to : from, to, (size_t)bytes, mpi_operator(op), mpi_type(type));
    return 1;
}

/* ---- MPI ---- */

EXPORT int MPI_Bcast(void *buffer, int count, handle datatype, int root, handle comm) {
    int code;
    find();
    return bcast(buffer, count, datatype, root, comm, &code) ? code : mpi.Bcast(buffer, count, datatype, root, comm);
}

/* An older MPI has no functions for long counts, but programs also find these functions here. */
EXPORT int MPI_Bcast_c(void *buffer, int64_t count, handle datatype, int root, handle comm) {
    int code;
    find();
    if (bcast(buffer, count, datatype, root, comm, &code))
        return code;
    if (mpi.Bcast_c)
        return mpi.Bcast_c(buffer, count, datatype, root, comm);
    return count > INT_MAX ? MPI_ERR_OTHER : mpi.Bcast(buffer, (int)count, datatype, root, comm);
}

EXPORT int MPI_Barrier(handle comm) {
    find();
    if (!is_wanted[OFFLOAD_BARRIER] || !counted(OFFLOAD_BARRIER, reason_of(comm), 0))
        return mpi.Barrier(comm);
    card_barrier();
    return 0;
}

EXPORT int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, handle datatype, handle op, handle comm) {
    find();
    return allreduce(sendbuf, recvbuf, count, datatype, op, comm) ? 0
                                                                   : mpi.Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}

EXPORT int MPI_Allreduce_c(const void *sendbuf, void *recvbuf, int64_t count, handle datatype, handle op, handle comm) {
    find();
    if (allreduce(sendbuf, recvbuf, count, datatype, op, comm))
        return 0;
    if (mpi.Allreduce_c)
        return mpi.Allreduce_c(sendbuf, recvbuf, count, datatype, op, comm);
    return count > INT_MAX ? MPI_ERR_OTHER : mpi.Allreduce(sendbuf, recvbuf, (int)count, datatype, op, comm);
}
