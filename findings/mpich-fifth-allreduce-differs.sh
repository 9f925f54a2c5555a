#!/usr/bin/env bash
# Guess: MPI_Allreduce of the same values over the same ranks gives the same bits at each call.
# From:  the MPI standard, 6.9.1, advice to implementors: "It is strongly recommended that MPI_REDUCE be implemented
#        so that the same result be obtained whenever the function is applied on the same arguments, appearing in the
#        same order."
# True:  MPICH on one node changes to another algorithm once a communicator has had some collective operations, and with
#        it the order of additions: the fifth call differs from the fourth. The documentation of the variable
#        MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD says so.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check mpich==5.0.2
cat >same.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    /* (0 + 1) + (2 + 3) is 1 + 2^-52. Any other pairing rounds to 1. */
    static const double given[4] = {1, 0, 0x1p-53, 0x1p-53};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int call = 1; call <= 8; call++) {
        double sum;
        MPI_Allreduce(&given[rank], &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (rank == 0) printf("call %d: 1 + %g\n", call, sum - 1);
    }
    return MPI_Finalize();
}
C
env/bin/mpicc -o same same.c

env/bin/mpiexec --version | grep "Version:"
env/bin/mpiexec -n 4 ./same </dev/null | tee out
env/bin/mpivars >variables
grep -m 1 "MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD=5" variables
cat >expected <<'TEXT'
call 1: 1 + 2.22045e-16
call 2: 1 + 2.22045e-16
call 3: 1 + 2.22045e-16
call 4: 1 + 2.22045e-16
call 5: 1 + 0
call 6: 1 + 0
call 7: 1 + 0
call 8: 1 + 0
TEXT
cmp out expected || { echo "changed: the sums differ from those seen" >&2; exit 1; }
