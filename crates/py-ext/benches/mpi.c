/* MPI messages of 8 B between all ranks, for processes.py and profiles.py: `mpi ping-pong COUNT` and `mpi alltoall COUNT`. */

#include <mpi.h>

#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static void ping_pong(int count) {
    char ball[8] = {0};
    for (int i = 0; i < count && rank < 2; i++) {
        if (rank == 0)
            MPI_Send(ball, sizeof ball, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(ball, sizeof ball, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(ball, sizeof ball, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

static void alltoall(int count) {
    char *out = calloc((size_t)ranks, 8), *in = calloc((size_t)ranks, 8);
    for (int i = 0; out && in && i < count; i++)
        MPI_Alltoall(out, 8, MPI_BYTE, in, 8, MPI_BYTE, MPI_COMM_WORLD);
    free(out);
    free(in);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count == 3 && !strcmp(words[1], "ping-pong"))
        ping_pong(atoi(words[2]));
    else if (count == 3 && !strcmp(words[1], "alltoall"))
        alltoall(atoi(words[2]));
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    return 0;
}
