/* More messages in flight than a card has descriptors, entries or headers: their number, their bytes, and the order of
 * posts at both ends. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, count, bytes;
static unsigned char *all, *own;
static MPI_Request *sends, *receives;

static void send_all(void) {
    for (int i = 0; i < count; i++)
        MPI_Isend(own + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, 1 - rank, i % 1000, MPI_COMM_WORLD, sends + i);
}

static void receive_all(void) {
    for (int i = 0; i < count; i++)
        MPI_Irecv(all + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, 1 - rank, i % 1000, MPI_COMM_WORLD, receives + i);
}

int main(int words, char **word) {
    MPI_Init(&words, &word);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    count = atoi(word[2]), bytes = atoi(word[3]);
    const char *order = word[1];
    size_t length = (size_t)count * (size_t)bytes;
    own = malloc(length), all = calloc(length, 1);
    sends = malloc((size_t)count * sizeof *sends), receives = malloc((size_t)count * sizeof *receives);
    for (size_t i = 0; i < length; i++)
        own[i] = (unsigned char)(i * 31 + i / (size_t)bytes * 7);
    MPI_Barrier(MPI_COMM_WORLD);
    int sender = rank == 0 || !strncmp(order, "both", 4), receiver = rank == 1 || !strncmp(order, "both", 4);
    if (receiver && !strcmp(order, "both-receive-first"))
        receive_all();
    if (sender)
        send_all();
    if (receiver && (!strcmp(order, "both-send-first") || !strcmp(order, "posted")))
        receive_all();
    if (receiver && !strcmp(order, "in-turn"))
        for (int i = 0; i < count; i++)
            MPI_Recv(all + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, 0, i % 1000, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (sender)
        MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
    if (receiver && strcmp(order, "in-turn"))
        MPI_Waitall(count, receives, MPI_STATUSES_IGNORE);
    if (receiver && memcmp(all, own, length)) {
        fprintf(stderr, "wrong bytes\n");
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
    MPI_Finalize();
    return 0;
}
