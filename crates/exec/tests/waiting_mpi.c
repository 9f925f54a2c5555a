/* Starts and ends as Open MPI does. It waits for the other processes by polls and sleeps, and their number depends on the speed of the
 * machine. The program sets the functions that open its endpoint, close it and poll, and a folder by which the processes communicate. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int ompi_mpi_comm_world;
void (*waiting_open)(void), (*waiting_look)(void), (*waiting_close)(void);
const char *waiting_folder;
unsigned waiting_rank, waiting_ranks;

static void wait_for_all(const char *when) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%u", waiting_folder, when, waiting_rank);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    for (unsigned rank = 0; rank < waiting_ranks; rank++) {
        snprintf(path, sizeof path, "%s/%s.%u", waiting_folder, when, rank);
        do {
            waiting_look();
            usleep(100);
        } while (access(path, F_OK));
    }
}

int MPI_Init(int *count, char ***words) {
    (void)count, (void)words;
    struct timespec now;
    waiting_open();
    /* Some processes arrive later than others, and read clocks more often. */
    for (unsigned reads = waiting_rank * 7 + (unsigned)getpid() % 5; reads; reads--)
        clock_gettime(CLOCK_MONOTONIC, &now);
    wait_for_all("start");
    return 0;
}

/* Functions that poll a fixed number of times, with or without arrivals. The number of polls left is in a register, or on the stack. */
int MPI_Barrier(void *unused) {
    (void)unused;
    for (int looks = 0; looks < 100; looks++)
        waiting_look();
    return 0;
}

int MPI_Bcast(void *unused) {
    (void)unused;
    for (volatile int looks = 0; looks < 100; looks++)
        waiting_look();
    return 0;
}

/* As above, but the function checks files between polls, and the number of polls is stored elsewhere. */
int MPI_Scan(void *unused) {
    static int looks;
    (void)unused;
    for (looks = 0; looks < 100; looks++) {
        waiting_look();
        poll(NULL, 0, 0);
    }
    return 0;
}

int MPI_Finalize(void) {
    struct timespec machine, now;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &machine);
    clock_gettime(CLOCK_REALTIME, &now);
    if (labs((long)(now.tv_sec - machine.tv_sec)) > 1) {
        fprintf(stderr, "rank %u ends in another time than the machine's\n", waiting_rank);
        exit(4);
    }
    wait_for_all("end");
    waiting_close();
    return 0;
}
