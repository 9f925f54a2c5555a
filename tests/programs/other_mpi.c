/* What tells a library of Open MPI from others, and a program of it: as far as nicety looks. */
#include <stdio.h>

#ifdef LIBRARY
char ompi_mpi_comm_world[8];
int MPI_Init(int *count, char ***words);
int MPI_Init(int *count, char ***words) {
    (void)count, (void)words;
    return 0;
}
#else
int MPI_Init(int *count, char ***words);
int main(int count, char **words) {
    if (MPI_Init(&count, &words))
        return 3;
    puts("each is a program of its own");
    return 0;
}
#endif
