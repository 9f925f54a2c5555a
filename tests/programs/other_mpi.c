/* The distinguishing features of an Open MPI library, and a program linked with it, as far as nicety checks them. */
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
