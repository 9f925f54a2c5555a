/* A program with a rank that ends in some way after its last words, or overwrites memory shared with the simulator. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Overwrites all writable memory of this name with one value or, below 0, with consecutive numbers. */
static void write_over(int value) {
    char line[512], rights[8];
    unsigned long start, end;
    uint32_t number = (uint32_t)-value * 2654435761u;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        if (!strstr(line, "memfd:nicety") || sscanf(line, "%lx-%lx %7s", &start, &end, rights) != 3 || rights[1] != 'w')
            continue;
        if (value >= 0)
            memset((void *)start, value, end - start);
        for (uint32_t *at = (uint32_t *)start; value < 0 && at < (uint32_t *)end; at++)
            *at = number = number * 1664525u + 1013904223u;
    }
    if (maps)
        fclose(maps);
}

int main(int count, char **words) {
    int rank, who = count > 2 ? atoi(words[2]) : 1, value = count > 3 ? atoi(words[3]) : 0;
    const char *how = count > 1 ? words[1] : "";
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == who) {
        printf("last words, not flushed\n");
        if (strcmp(how, "abort") && strcmp(how, "error"))
            fflush(stdout);
        fprintf(stderr, "last words of rank %d\n", rank);
        if (!strcmp(how, "abort"))
            MPI_Abort(MPI_COMM_WORLD, 7);
        if (!strcmp(how, "error"))
            MPI_Send(&rank, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
        if (!strcmp(how, "exit"))
            _exit(3);
        if (!strcmp(how, "crash"))
            raise(SIGSEGV);
        if (!strcmp(how, "killed"))
            raise(SIGKILL);
        if (!strcmp(how, "waits"))
            MPI_Recv(&rank, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!strncmp(how, "over", 4))
            write_over(value);
        while (!strcmp(how, "over-computes"))
            ;
        if (!strcmp(how, "over-exits"))
            _exit(0);
        if (!strcmp(how, "over-reads"))
            (void)!read(STDIN_FILENO, &value, 1);
        if (!strcmp(how, "over-pauses"))
            pause();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
