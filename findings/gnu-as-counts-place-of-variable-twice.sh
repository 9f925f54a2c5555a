#!/usr/bin/env bash
# Guess: GCC's eBPF objects name a variable as clang's do. A loader adds the constant of the instruction to the value of the
#        relocation's symbol, so the constant is 0 where the symbol is the variable itself.
# From:  LLVM's page "BPF Instruction Set", section "Relocations": R_BPF_64_64 is S + A, and A is in the 32-bit constant.
# True:  GNU as 2.40, which gcc-bpf 12.2.0 of Debian 12 calls, writes the variable's place into the constant too, beside a symbol
#        with that place. libbpf 1.1.2 then reads the variable at twice the place: the third number instead of the second here,
#        or bytes behind the section, which Linux refuses. Clang of the package ziglang 0.17.0 writes 0.
set -euo pipefail
command -v bpf-gcc >/dev/null || { echo "needs Debian's gcc-bpf" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check ziglang==0.17.0
export ZIG_GLOBAL_CACHE_DIR=$work/cache ZIG_LOCAL_CACHE_DIR=$work/cache
cat >pick.c <<'C'
volatile int first = 11, second = 22, third = 33;
__attribute__((section("xdp"))) int pick(void *context) { return second; }
C
bpf-gcc -O2 -c pick.c -o gcc.o
env/bin/python -m ziglang cc -target bpfel-freestanding -O2 -c pick.c -o clang.o
cat >read.py <<'P'
import struct, sys

elf = open(sys.argv[1], "rb").read()
table, size, count = struct.unpack_from("<Q", elf, 40)[0], *struct.unpack_from("<HH", elf, 58)
sections = [struct.unpack_from("<IIQQQQIIQQ", elf, table + size * at) for at in range(count)]
names = sections[struct.unpack_from("<H", elf, 62)[0]][4]


def text(at):
    return elf[at : elf.index(b"\0", at)].decode()


for section in sections:
    if section[1] == 9 and text(names + section[0]) == ".relxdp":
        at, info = struct.unpack_from("<QQ", elf, section[4])
        symbols = sections[section[6]]
        name, value = struct.unpack_from("<I4xQ", elf, symbols[4] + 24 * (info >> 32))
        constant = struct.unpack_from("<i", elf, sections[section[7]][4] + at + 4)[0]
        symbol = text(sections[symbols[6]][4] + name)
        print(f"symbol {symbol} at byte {value}, constant {constant}: byte {value + constant}")
P
for compiler in gcc clang; do
    echo "$compiler: $(python3 read.py "$compiler.o")"
done | tee seen
expected='gcc: symbol second at byte 4, constant 4: byte 8
clang: symbol second at byte 4, constant 0: byte 4'
[[ $(<seen) == "$expected" ]] || { echo "changed: the places differ from those of GNU as 2.40" >&2; exit 1; }
