#!/usr/bin/env bash
# Guess: ctzw counts the trailing zeros of a register's low word, and gives 32 where that word is zero.
# From:  RISC-V's bit-manipulation extensions: the instruction counts the zeros of the least-significant word.
# True:  qemu-riscv64 before version 8 counts the zeros of all 64 bits. For 1 << 53 it gives 53.
set -euo pipefail
command -v qemu-riscv64 >/dev/null || { echo "install qemu-riscv64 (seen with 7.2)" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check ziglang==0.17.0
export ZIG_GLOBAL_CACHE_DIR=$work/cache ZIG_LOCAL_CACHE_DIR=$work/cache
cat >count.s <<'S'
.globl _start
_start:
    li a1, 1
    slli a1, a1, 53
    ctzw a0, a1
    li a7, 93
    ecall
S
env/bin/python -m ziglang cc -target riscv64-freestanding-none -mcpu=generic_rv64+zbb -nostdlib -static -o count count.s
qemu-riscv64 --version | sed -n 1p
counted=0
qemu-riscv64 -cpu rv64,zbb=on ./count || counted=$?
echo "ctzw of 1 << 53: $counted"
[[ $counted == 53 ]] || { echo "changed: it is not 53" >&2; exit 1; }
