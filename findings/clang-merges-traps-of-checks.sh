#!/usr/bin/env bash
# Guess: with -g, a check of -fsanitize-trap traps at an instruction of its own, so that a debugger or a simulator can
#        name the line of the C source.
# From:  clang's release notes on -fsanitize-debug-trap-reasons: debug information describes each individual trap.
# True:  with optimization clang merges all traps of a kind in a function into one, with line 0 and without a reason.
#        -fno-sanitize-merge separates them again; a remark at the end of that note names the option.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check ziglang==0.17.0
export ZIG_GLOBAL_CACHE_DIR=$work/cache ZIG_LOCAL_CACHE_DIR=$work/cache
cat >checks.c <<'C'
int checked(int a, int b, int c) {
    int x = a + b;
    int y = x * c;
    return y - a;
}
C
compile() {
    env/bin/python -m ziglang cc -target riscv32-freestanding-none -mcpu=generic_rv32+m -O2 -g \
        -fsanitize=signed-integer-overflow -fsanitize-trap=all "$@" -S -o checks.s checks.c 2>warnings
    echo "$(grep -cw unimp checks.s) traps, $(grep -c '__clang_trap_msg.*overflow' checks.s) reasons"
}
env/bin/python -m ziglang cc --version | sed -n 1p
merged=$(compile) separate=$(compile -fno-sanitize-merge)
echo "three checks:          $merged"
echo "-fno-sanitize-merge:   $separate"
[[ $merged == "1 traps, 0 reasons" && $separate == "3 traps, 3 reasons" ]] ||
    { echo "changed: the numbers of traps differ from those seen" >&2; exit 1; }
