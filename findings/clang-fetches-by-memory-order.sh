#!/usr/bin/env bash
# Guess: an atomic addition of eBPF fetches the old value where the program reads the result, and does not where nobody reads it.
#        So a counter by __sync_fetch_and_add is the plain addition, and a ticket by a relaxed __atomic_fetch_add the fetching one.
# From:  the builtins' description in GCC's manual: all of them return the old value, in any memory order; and clang up to LLVM 19.
# True:  since LLVM 20 (ziglang 0.15), with -mcpu=v3, the memory order decides. A counter by __sync_fetch_and_add fetches: kernels
#        before 5.12 and Linux's offload to the Netronome NFP refuse that instruction. A relaxed addition never fetches, so its
#        result is the addend, without a warning: each caller gets the same ticket. Pull request 217074 of LLVM describes it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check pyelftools==0.32
export ZIG_GLOBAL_CACHE_DIR=$work/cache ZIG_LOCAL_CACHE_DIR=$work/cache
cat >count.c <<'C'
#define IN(name) __attribute__((section(name)))
typedef unsigned long long number;
IN("counter") int f1(number *n) { __sync_fetch_and_add(n, 5); return 0; }
IN("ticket") number f2(number *n) { return __atomic_fetch_add(n, 5, __ATOMIC_RELAXED); }
IN("ordered") number f3(number *n) { return __atomic_fetch_add(n, 5, __ATOMIC_SEQ_CST); }
C
cat >show.py <<'P'
import sys
from elftools.elf.elffile import ELFFile

with open("count.o", "rb") as file:
    for name in ("counter", "ticket", "ordered"):
        code = ELFFile(file).get_section_by_name(name).data()
        (atomic,) = (code[at : at + 8] for at in range(0, len(code), 8) if code[at] == 0xDB)
        print(f"ziglang {sys.argv[1]}, {name}: {'fetches' if atomic[4] & 1 else 'adds'}")
P
for version in 0.14.1 0.17.0; do
    env/bin/pip install --quiet --disable-pip-version-check "ziglang==$version"
    env/bin/python -m ziglang cc -target bpfel-freestanding -O2 -mcpu=v3 -c count.c -o count.o
    env/bin/python show.py "$version"
done >seen
cat seen
expected='ziglang 0.14.1, counter: adds
ziglang 0.14.1, ticket: fetches
ziglang 0.14.1, ordered: fetches
ziglang 0.17.0, counter: fetches
ziglang 0.17.0, ticket: adds
ziglang 0.17.0, ordered: fetches'
[[ $(<seen) == "$expected" ]] || { echo "changed: the results differ from those seen with ziglang 0.14.1 and 0.17.0" >&2; exit 1; }
