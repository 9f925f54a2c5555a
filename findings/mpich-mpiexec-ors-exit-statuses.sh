#!/usr/bin/env bash
# Guess: mpiexec of MPICH ends with the highest status of its processes, so that a status that no process has cannot come out.
# From:  MPICH's page on mpiexec, "Return Status": it returns the maximum of the exit status values of all of the processes.
# True:  its launcher Hydra combines the statuses bit by bit with "or": 1 and 2 give 3, and 16, 2 and 64 give 82. A script that tells
#        errors by the status takes an error for another one.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check mpich==5.0.2 mpi4py==4.1.2
cat >leave.py <<'P'
import sys

from mpi4py import MPI

rank = MPI.COMM_WORLD.rank
MPI.Finalize()
sys.exit(int(sys.argv[1 + rank]))
P
for statuses in "2 0" "1 2" "4 3" "16 2 64"; do
    read -ra each <<<"$statuses"
    status=0
    env/bin/mpiexec -n ${#each[@]} env/bin/python leave.py "${each[@]}" >/dev/null 2>errors || status=$?
    echo "MPICH 5.0.2: processes end with $statuses, mpiexec with $status" | tee -a seen
done
expected='MPICH 5.0.2: processes end with 2 0, mpiexec with 2
MPICH 5.0.2: processes end with 1 2, mpiexec with 3
MPICH 5.0.2: processes end with 4 3, mpiexec with 7
MPICH 5.0.2: processes end with 16 2 64, mpiexec with 82'
[[ $(<seen) == "$expected" ]] || { echo "changed: the statuses differ from those seen with MPICH 5.0.2" >&2; exit 1; }
