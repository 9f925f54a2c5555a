#!/usr/bin/env bash
# Guess: a loader of eBPF objects reads the programs whose sections it knows, and leaves others alone. libbpf does so: it opens
#        the object, and a program of another section has no type until the caller sets one.
# From:  libbpf's documentation of program types: the section's name is a hint, and bpf_program__set_type sets the type.
# True:  aya-obj 0.3.0 refuses the whole object for one section that it does not know, also a section that holds only a
#        subprogram of the XDP program. Without that section it reads the same program.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check ziglang==0.17.0
export ZIG_GLOBAL_CACHE_DIR=$work/cache ZIG_LOCAL_CACHE_DIR=$work/cache
cat >program.c <<'C'
#define SECTION(name) __attribute__((section(name), used))
char _license[] SECTION("license") = "GPL";
#ifdef OWN
SECTION("helpers")
#endif
__attribute__((noinline)) int twice(int value) { return 2 * value; }
SECTION("xdp") int pass(void *context) { return twice(1); }
C
compile() { env/bin/python -m ziglang cc -target bpfel-freestanding -O2 -g -fno-asynchronous-unwind-tables "$@" -c program.c; }
compile -o plain.o
compile -DOWN -o own.o

cargo init --quiet --bin --name probe .
cat >>Cargo.toml <<'T'
aya-obj = "=0.3.0"
T
cat >src/main.rs <<'R'
fn main() {
    for name in ["plain.o", "own.o"] {
        match aya_obj::Object::parse(&std::fs::read(name).unwrap()) {
            Ok(object) => println!("{name}: {} program", object.programs.len()),
            Err(error) => println!("{name}: {error}"),
        }
    }
}
R
cargo run --quiet 2>build.log >seen || { cat build.log >&2; exit 1; }
cat seen
expected='plain.o: 1 program
own.o: invalid program section `helpers`'
[[ $(<seen) == "$expected" ]] || { echo "changed: the results differ from those seen with aya-obj 0.3.0" >&2; exit 1; }
