#!/usr/bin/env bash
# Guess: an emulator of RISC-V divides as the cards' processors do: -7 by 2 is -3 with a remainder of -1, and a division by zero gives -1
#        with the dividend as the remainder, without a trap.
# From:  the RISC-V unprivileged specification, extension M, "Division Operations": signed division rounds towards zero, the remainder has
#        the sign of the dividend, and a table gives the results by zero.
# True:  riscemu 2.2.7 rounds down, as Python's own division does: -4 with a remainder of 1. Its unsigned division is right. A division
#        by zero ends with Python's ZeroDivisionError instead of -1.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check riscemu==2.2.7
cat >divide.s <<'A'
.text
.globl main
main:
    li t0, -7
    li t1, 2
    div s0, t0, t1
    rem s1, t0, t1
    divu s2, t0, t1
    printf "-7 by 2: quotient {}, remainder {}" s0 s1
    printf "0xfffffff9 by 2, unsigned: {}" s2
    li a0, 0
    li a7, 93
    ecall
A
sed '/printf/d; s/li t1, 2/li t1, 0/' divide.s >zero.s
{
    echo "riscemu $(env/bin/pip list --disable-pip-version-check --format=freeze | sed -n 's/^riscemu==//p')"
    env/bin/python -m riscemu divide.s
    env/bin/python -m riscemu zero.s >by-zero 2>&1 </dev/null || true
    grep -o '^ZeroDivisionError' by-zero || echo "no error by zero"
} | tee seen
expected='riscemu 2.2.7
-7 by 2: quotient -4, remainder 1
0xfffffff9 by 2, unsigned: 2147483644
ZeroDivisionError'
[[ $(<seen) == "$expected" ]] || { echo "changed: the quotients differ from those seen with riscemu 2.2.7" >&2; exit 1; }
