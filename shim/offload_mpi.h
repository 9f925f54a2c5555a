/* The MPI of the process, for this library: MPICH, Open MPI, or a library with MPI's standard binary interface. A
 * handle is the contents of a register: a number of 32 bits, or an address. */

#ifndef NICETY_OFFLOAD_MPI_H
#define NICETY_OFFLOAD_MPI_H

#include <stdint.h>

typedef uintptr_t handle;

/* MPI's functions by their PMPI names. A function that an older MPI lacks may be NULL. */
struct mpi_functions {
    int (*Bcast)(void *, int, handle, int, handle);
    int (*Bcast_c)(void *, int64_t, handle, int, handle);
    int (*Barrier)(handle);
    int (*Allreduce)(const void *, void *, int, handle, handle, handle);
    int (*Allreduce_c)(const void *, void *, int64_t, handle, handle, handle);
    int (*Abi_get_version)(int *, int *);
    int (*Comm_rank)(handle, int *);
    int (*Comm_size)(handle, int *);
    int (*Comm_compare)(handle, handle, int *);
    int (*Type_size)(handle, int *);
    int (*Type_size_c)(handle, int64_t *);
    int (*Pack)(const void *, int, handle, void *, int, int *, handle);
    int (*Pack_c)(const void *, int64_t, handle, void *, int64_t, int64_t *, handle);
    int (*Unpack)(const void *, int, int *, void *, int, handle, handle);
    int (*Unpack_c)(const void *, int64_t, int64_t *, void *, int64_t, handle, handle);
    int (*Iprobe)(int, int, handle, int *, void *);
    int (*Abort)(handle, int);
};
extern struct mpi_functions mpi;

/* Finds the MPI of this process. Returns whether the MPI is a known one. */
int mpi_find(void);

handle mpi_world(void);
int mpi_is_null_communicator(handle comm);
int mpi_is_null_type(handle type);
int mpi_is_in_place(const void *buffer);
/* Returns whether a communicator has all ranks of MPI_COMM_WORLD, in their order. */
int mpi_is_of_all(handle comm);

/* Returns the number of an operator or a type in collectives.h, or -1. */
int mpi_operator(handle op);
int mpi_type(handle type);
/* Returns whether items of this type are contiguous, without gaps. */
int mpi_is_packed(handle type);
/* Returns whether both MPI and the handlers have this operator for this type. */
int mpi_reduces(handle op, handle type);
/* Returns the bytes of an item, or a negative number if the type is invalid. */
int64_t mpi_type_bytes(handle type);

/* Copies between an MPI buffer and contiguous bytes. */
int mpi_pack(const void *from, int64_t count, handle type, void *bytes, int64_t length, handle comm);
int mpi_unpack(const void *bytes, int64_t length, void *to, int64_t count, handle type, handle comm);

/* Returns the least of the values of all ranks. */
int mpi_least(int value);
/* Lets MPI handle arrived completions. */
void mpi_progress(void);

#endif
