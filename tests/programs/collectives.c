/* Collective operations of MPI, compared with MPI's own under their PMPI_ names. Every wrong value ends the program.
 * Its arguments are tests. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WANT(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "rank %d, line %d: not %s\n", rank, __LINE__, #what);                                      \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                                              \
        }                                                                                                              \
    } while (0)

static int rank, ranks;

/* One clock for all: MPI_Wtime of Open MPI begins with each process's first call. */
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static unsigned char byte_of(size_t at, int seed) {
    return (unsigned char)((at * 2654435761u + (size_t)seed * 40503u) >> 8);
}

static void bcast_of(size_t bytes, int root, int seed, MPI_Comm comm) {
    unsigned char *buffer = malloc(bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        buffer[i] = rank == root ? byte_of(i, seed) : 0xee;
    buffer[bytes] = 0x77;
    WANT(MPI_Bcast(buffer, (int)bytes, MPI_BYTE, root, comm) == MPI_SUCCESS);
    for (size_t i = 0; i < bytes; i++)
        WANT(buffer[i] == byte_of(i, seed));
    WANT(buffer[bytes] == 0x77);
    /* Later writes of a root are not sent. */
    memset(buffer, 0x11, bytes);
    free(buffer);
}

/* Lengths below, at and above an eager message, a packet, a slot and all slots, from every root. */
static void bcast(void) {
    static const size_t sizes[] = {1, 8, 2048, 2049, 4095, 4096, 4097, 65535, 65536, 65537, 700001};
    for (int root = 0; root < ranks; root++)
        for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++)
            bcast_of(sizes[s], root, root + (int)s, MPI_COMM_WORLD);
    bcast_of(0, 0, 1, MPI_COMM_WORLD);
}

/* A root that runs ahead of the others, the last of which comes late, and alternating roots. */
static void ahead(void) {
    int values[400];
    double start = now();
    while (rank == ranks - 1 && now() - start < 200e-6)
        ;
    for (int i = 0; i < 400; i++) {
        values[i] = rank == 0 ? 3 * i : -1;
        MPI_Bcast(&values[i], 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    for (int i = 0; i < 400; i++)
        WANT(values[i] == 3 * i);
    for (int i = 0; i < 200; i++) {
        int root = (i * 7) % ranks;
        bcast_of(1 + (size_t)(i * 911) % 9000, root, i, MPI_COMM_WORLD);
        if (i % 13 == 0)
            MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Types that differ from rank to rank, and that have gaps. */
static void types(void) {
    enum { N = 3000 };
    static int32_t strided[2 * N], dense[N];
    MPI_Datatype vector;
    MPI_Type_vector(N, 1, 2, MPI_INT32_T, &vector);
    MPI_Type_commit(&vector);
    for (int i = 0; i < N; i++) {
        strided[2 * i] = rank == 0 ? i * i : -1;
        strided[2 * i + 1] = 7;
        dense[i] = -1;
    }
    if (rank % 2 == 0)
        MPI_Bcast(strided, 1, vector, 0, MPI_COMM_WORLD);
    else
        MPI_Bcast(dense, N, MPI_INT32_T, 0, MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) {
        WANT((rank % 2 ? dense[i] : strided[2 * i]) == i * i);
        WANT(strided[2 * i + 1] == 7);
    }
    MPI_Type_free(&vector);
}

/* Sums and products stay in range: beyond it Open MPI takes the nearest number, and others wrap round. */
#define REDUCE(name, type, mpi_type, floating)                                                                         \
    static void name(size_t count, int in_place) {                                                                     \
        const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR,     \
                              MPI_LXOR};                                                                               \
        type *mine = malloc(count * sizeof(type)), *got = malloc(count * sizeof(type)),                                \
             *expected = malloc(count * sizeof(type));                                                                 \
        for (int op = 0; op < (floating ? 4 : 10); op++) {                                                             \
            for (size_t i = 0; i < count; i++)                                                                         \
                mine[i] = floating  ? (type)((int)((i + (size_t)rank * 3 + (size_t)op) % 5) - 2) / 2                   \
                          : op == 1 ? (type)(1 + ((i + (size_t)rank) % 4 == 0))                                        \
                          : op == 0 ? (type)((i + 3 * (size_t)rank) % 15)                                              \
                                    : (type)(i * 2654435761u + (size_t)rank * 977u + (i + (size_t)rank) % 3);          \
            memcpy(got, mine, count * sizeof(type));                                                                   \
            MPI_Allreduce(in_place ? MPI_IN_PLACE : mine, got, (int)count, mpi_type, ops[op], MPI_COMM_WORLD);         \
            PMPI_Allreduce(mine, expected, (int)count, mpi_type, ops[op], MPI_COMM_WORLD);                             \
            for (size_t i = 0; i < count; i++)                                                                         \
                WANT(got[i] == expected[i]);                                                                           \
        }                                                                                                              \
        free(mine), free(got), free(expected);                                                                         \
    }

REDUCE(int8, int8_t, MPI_INT8_T, 0)
REDUCE(uint8, uint8_t, MPI_UINT8_T, 0)
REDUCE(int16, short, MPI_SHORT, 0)
REDUCE(uint16, uint16_t, MPI_UINT16_T, 0)
REDUCE(int32, int, MPI_INT, 0)
REDUCE(uint32, unsigned, MPI_UNSIGNED, 0)
REDUCE(int64, long, MPI_LONG, 0)
REDUCE(uint64, uint64_t, MPI_UINT64_T, 0)
REDUCE(real32, float, MPI_FLOAT, 1)
REDUCE(real64, double, MPI_DOUBLE, 1)

static void allreduce(void) {
    static void (*const all[])(size_t, int) = {int8, uint8, int16, uint16, int32, uint32, int64, uint64, real32, real64};
    for (unsigned type = 0; type < sizeof all / sizeof *all; type++) {
        all[type](1, 0);
        all[type](3, 1);
        all[type](700, type & 1);
    }
    /* Over several packets, and up to the longest. */
    int32(3001, 0);
    real64(1000, 1);
    int64(8192, 1);
}

/* One after another, with other operations between. */
static void mixed(void) {
    for (int i = 0; i < 60; i++) {
        long mine[600], sum[600];
        for (int k = 0; k < 600; k++)
            mine[k] = (long)i * 1000 + rank + k;
        MPI_Allreduce(mine, sum, 1 + (i * 101) % 600, MPI_LONG, i % 2 ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD);
        for (int k = 0; k < 1 + (i * 101) % 600; k++)
            WANT(sum[k] == (i % 2 ? (long)ranks * (i * 1000 + k) + (long)ranks * (ranks - 1) / 2
                                  : (long)i * 1000 + ranks - 1 + k));
        if (i % 3 == 0)
            bcast_of((size_t)i * 50 + 1, i % ranks, i, MPI_COMM_WORLD);
        if (i % 4 == 0)
            MPI_Barrier(MPI_COMM_WORLD);
        if (i % 5 == 0)
            PMPI_Barrier(MPI_COMM_WORLD);
    }
}

/* No rank leaves a barrier before the last one arrives. */
static void barrier(void) {
    for (int late = 0; late < ranks; late++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = now();
        while (rank == late && now() - start < 50e-6)
            ;
        double come = now(), last = 0;
        MPI_Barrier(MPI_COMM_WORLD);
        double gone = now();
        PMPI_Allreduce(&come, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        WANT(gone >= last);
        WANT(gone - start < 150e-6);
    }
}

/* Calls that are left to MPI: 2 of a part of the ranks, 1 of an operator, 1 of a type, 1 too long, 2 empty. And 1 of a
 * communicator that resembles the world, but is another one. */
static int twice_calls;
static void twice(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type, twice_calls++;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += 2 * ((int *)in)[i];
}

static void passed(void) {
    MPI_Comm part, same, turned;
    int value = 1, sum = 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    MPI_Comm_dup(MPI_COMM_WORLD, &same);
    int there = 0, first = rank == 0 ? 5 : 0;
    MPI_Comm_size(part, &there);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, part);
    WANT(sum == there);
    MPI_Bcast(&first, 1, MPI_INT, ranks - 1, turned);
    WANT(first == 5);
    MPI_Op op;
    MPI_Op_create(twice, 1, &op);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
    WANT(sum > ranks - 1);
    struct {
        double value;
        int place;
    } own = {rank, rank}, most;
    MPI_Allreduce(&own, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    WANT(most.place == ranks - 1);
    float _Complex number = 1, numbers = 0;
    MPI_Allreduce(&number, &numbers, 1, MPI_C_FLOAT_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
    WANT(numbers == (float)ranks);
    static int many[20000], sums[20000];
    for (int i = 0; i < 20000; i++)
        many[i] = i + rank;
    MPI_Allreduce(many, sums, 20000, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 20000; i++)
        WANT(sums[i] == ranks * i + ranks * (ranks - 1) / 2);
    MPI_Allreduce(many, sums, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(many, 0, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, same);
    WANT(sum == ranks);
    MPI_Comm_free(&part), MPI_Comm_free(&turned), MPI_Comm_free(&same), MPI_Op_free(&op);
}

/* A rank that waits in an offloaded barrier serves one-sided operations of others. */
static void progress(void) {
    int *memory;
    MPI_Win win;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    *memory = 0;
    PMPI_Barrier(MPI_COMM_WORLD);
    if (rank) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        int one = 1;
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        WANT(*memory == ranks - 1);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
}

/* A rank that polls its memory for another's write, while the others sleep. */
static void window(void) {
    int *memory, found = 0;
    MPI_Win win;
    double start = 0;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    *memory = 0;
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        int one = 1;
        usleep(50);
        start = now();
        MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
    } else if (rank == 0) {
        while (!*(volatile int *)memory) {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
            MPI_Win_sync(win);
        }
    } else {
        usleep(1000);
    }
    double seen = now();
    MPI_Bcast(&start, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    if (rank == 0)
        printf("window %.1f\n", (seen - start) * 1e9);
    MPI_Win_free(&win);
}

/* Times of a barrier, of a broadcast of 8 bytes, and of 4096. */
static void latency(void) {
    char bytes[4096];
    for (int what = 0; what < 3; what++) {
        double most = 0;
        for (int i = 0; i < 5; i++) {
            PMPI_Barrier(MPI_COMM_WORLD);
            double start = now(), first, last, end;
            if (what)
                MPI_Bcast(bytes, what == 1 ? 8 : 4096, MPI_BYTE, 0, MPI_COMM_WORLD);
            else
                MPI_Barrier(MPI_COMM_WORLD);
            end = now();
            PMPI_Allreduce(&start, &first, 1, MPI_DOUBLE, what ? MPI_MIN : MPI_MAX, MPI_COMM_WORLD);
            if (what)
                PMPI_Bcast(&start, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            PMPI_Allreduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            most = last - (what ? start : first);
        }
        if (rank == 0)
            printf("%s %.1f\n", what == 0 ? "barrier" : what == 1 ? "bcast8" : "bcast4096", most * 1e9);
    }
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"bcast", bcast},     {"ahead", ahead},     {"types", types},       {"allreduce", allreduce},
                 {"mixed", mixed},     {"barrier", barrier}, {"passed", passed},     {"progress", progress},
                 {"window", window},   {"latency", latency}};
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 1; i < count; i++) {
        int found = 0;
        for (unsigned t = 0; t < sizeof tests / sizeof *tests; t++)
            if (!strcmp(tests[t].name, words[i]))
                tests[t].run(), found = 1;
        WANT(found);
    }
    MPI_Finalize();
    return 0;
}
