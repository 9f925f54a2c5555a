/* traced.c: an MPI program with its own tracer, which writes liballprof's lines: a call's name, its begin, its
 * arguments as in MPI's C binding, its end. */
#include <mpi.h>
#include <stdio.h>

static FILE *out;

static long now(void) { return (long)(PMPI_Wtime() * 1e6); }

static void open_trace(void)
{
    char name[64];
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(name, sizeof name, "pmpi-trace-rank-%d.txt", rank);
    out = fopen(name, "w");
    fprintf(out, "# a trace\n\n");
}

static void pointer(const void *p) { fprintf(out, ":%lu", (unsigned long)p); }
static void number(long n) { fprintf(out, ":%ld", n); }

static void datatype(MPI_Datatype type)
{
    int size;
    MPI_Aint lower, extent;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &lower, &extent);
    fprintf(out, ":%lu,%d,%lu", (unsigned long)type, size, (unsigned long)extent);
}

static void communicator(MPI_Comm comm)
{
    int rank, size;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    fprintf(out, ":%lu,%d,%d", (unsigned long)(unsigned)comm, rank, size);
}

#define TRACED(name, call, ...)                                                                                        \
    long begin = now();                                                                                                \
    int result = call;                                                                                                 \
    fprintf(out, "%s:%ld", #name, begin);                                                                              \
    __VA_ARGS__;                                                                                                       \
    fprintf(out, ":%ld\n", now());                                                                                     \
    return result

int MPI_Init(int *argc, char ***argv)
{
    int result = PMPI_Init(argc, argv);
    open_trace();
    fprintf(out, "MPI_Init:-:%lu:%lu:%ld\n", (unsigned long)argc, (unsigned long)argv, now());
    return result;
}

int MPI_Finalize(void)
{
    fprintf(out, "MPI_Finalize:%ld:-\n", now());
    fclose(out);
    return PMPI_Finalize();
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    TRACED(MPI_Isend, PMPI_Isend(buffer, count, type, to, tag, comm, request), pointer(buffer), number(count),
           datatype(type), number(to), number(tag), communicator(comm), pointer(request));
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    TRACED(MPI_Irecv, PMPI_Irecv(buffer, count, type, from, tag, comm, request), pointer(buffer), number(count),
           datatype(type), number(from), number(tag), communicator(comm), pointer(request));
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    TRACED(MPI_Waitall, PMPI_Waitall(count, requests, statuses), number(count), pointer(requests), pointer(statuses));
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    TRACED(MPI_Recv, PMPI_Recv(buffer, count, type, from, tag, comm, status), pointer(buffer), number(count),
           datatype(type), number(from), number(tag), communicator(comm), pointer(status));
}

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    TRACED(MPI_Send, PMPI_Send(buffer, count, type, to, tag, comm), pointer(buffer), number(count), datatype(type),
           number(to), number(tag), communicator(comm));
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made)
{
    TRACED(MPI_Comm_dup, PMPI_Comm_dup(comm, made), communicator(comm), pointer(made));
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    TRACED(MPI_Allreduce, PMPI_Allreduce(from, to, count, type, op, comm), pointer(from), pointer(to), number(count),
           datatype(type), number((long)op), communicator(comm));
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    TRACED(MPI_Bcast, PMPI_Bcast(buffer, count, type, root, comm), pointer(buffer), number(count), datatype(type),
           number(root), communicator(comm));
}

int MPI_Barrier(MPI_Comm comm)
{
    TRACED(MPI_Barrier, PMPI_Barrier(comm), communicator(comm));
}

int main(int argc, char **argv)
{
    static int values[1000], sums[1000];
    MPI_Request requests[3];
    MPI_Status statuses[3];
    MPI_Comm all;
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    for (int round = 0; round < 3; round++) {
        /* Around a ring, and at its end to nobody. */
        MPI_Irecv(values, 1000, MPI_INT, (rank + ranks - 1) % ranks, 5, all, &requests[0]);
        MPI_Isend(sums, 1000, MPI_INT, (rank + 1) % ranks, 5, all, &requests[1]);
        MPI_Isend(sums, 1, MPI_INT, rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL, 6, all, &requests[2]);
        if (rank > 0)
            MPI_Recv(values, 1, MPI_INT, MPI_ANY_SOURCE, 6, all, statuses);
        MPI_Waitall(3, requests, statuses);
        MPI_Bcast(values, 10, MPI_DOUBLE, 1, all);
        MPI_Allreduce(values, sums, 500, MPI_INT, MPI_SUM, all);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
