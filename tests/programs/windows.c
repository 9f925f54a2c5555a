/* One-sided operations of MPI in a window that MPI allocates. A process that finds a wrong value ends with 3.
 * Arguments: a rank that leaves before the end, and the way it does. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static void expect(const char *what, int found, int expected) {
    if (found == expected)
        return;
    fprintf(stderr, "rank %d: %s: %d, not %d\n", rank, what, found, expected);
    _Exit(3);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    int *words_of_window;
    MPI_Win window;
    MPI_Win_allocate(16 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &words_of_window, &window);
    memset(words_of_window, 0, 16 * sizeof(int));
    MPI_Win_fence(0, window);
    int mine = rank + 1, later = 100 + rank, got = 0;
    MPI_Put(&mine, 1, MPI_INT, next, 1, 1, MPI_INT, window);
    MPI_Accumulate(&mine, 1, MPI_INT, 0, 2, 1, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(0, window);
    expect("put", words_of_window[1], before + 1);
    expect("accumulate", words_of_window[2], rank ? 0 : ranks * (ranks + 1) / 2);
    if (count > 2 && atoi(words[1]) == rank) {
        if (!strcmp(words[2], "abort"))
            MPI_Abort(MPI_COMM_WORLD, 5);
        if (!strcmp(words[2], "stop"))
            raise(SIGSTOP);
        _Exit(3);
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, window);
    MPI_Put(&later, 1, MPI_INT, next, 5, 1, MPI_INT, window);
    MPI_Win_unlock(next, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, window);
    MPI_Get(&got, 1, MPI_INT, next, 5, 1, MPI_INT, window);
    MPI_Win_unlock(next, window);
    expect("get", got, 100 + rank);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
