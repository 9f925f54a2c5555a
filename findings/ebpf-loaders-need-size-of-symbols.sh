#!/usr/bin/env bash
# Guess: a loader of eBPF objects takes a program that begins at a global symbol of its section, or says that it cannot. Whether the
#        assembler gave the symbol a type and a size is of no concern: clang's of 2018 gave none, nor does one for a plain label.
# From:  the ELF gABI, chapter 4: STT_NOTYPE is a symbol of an unspecified type, and st_size is 0 where the size is unknown.
# True:  aya-obj 0.3.0 reads such an object without an error, and it has no program. cilium/ebpf 0.22.0 keeps symbols without a
#        type for old compilers, as its source says, and then refuses the object: the symbol has 0 bytes, so no instructions. The
#        directives .type and .size alone make both read the program.
set -euo pipefail
command -v go >/dev/null || { echo "needs Go" >&2; exit 2; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"

python3 -m venv env
env/bin/pip install --quiet --disable-pip-version-check ziglang==0.17.0
export ZIG_GLOBAL_CACHE_DIR=$work/cache ZIG_LOCAL_CACHE_DIR=$work/cache
assemble() {
    printf '%s\n' '.section license,"aw",@progbits' '.asciz "GPL"' '.section xdp,"ax",@progbits' '.globl pass' \
        "$2" 'pass:' 'r0 = 2' 'exit' "$3" >"$1.s"
    env/bin/python -m ziglang cc -target bpfel-freestanding -c "$1.s" -o "$1.o"
}
assemble plain '' ''
assemble typed '.type pass,@function' '.size pass, .-pass'

mkdir -p rust go
cd rust
cargo init --quiet --bin --name probe .
cat >>Cargo.toml <<'T'
aya-obj = "=0.3.0"
T
cat >src/main.rs <<'R'
fn main() {
    for name in ["plain", "typed"] {
        match aya_obj::Object::parse(&std::fs::read(format!("../{name}.o")).unwrap()) {
            Ok(object) => println!("aya-obj 0.3.0, {name}: {} programs", object.programs.len()),
            Err(error) => println!("aya-obj 0.3.0, {name}: {error}"),
        }
    }
}
R
cargo run --quiet 2>build.log >../seen || { cat build.log >&2; exit 1; }
cd ../go
export GOPATH=$work/gopath GOCACHE=$work/gocache GOFLAGS=-mod=mod
cat >main.go <<'G'
package main

import (
	"fmt"

	"github.com/cilium/ebpf"
)

func main() {
	for _, name := range []string{"plain", "typed"} {
		spec, err := ebpf.LoadCollectionSpec("../" + name + ".o")
		if err != nil {
			fmt.Printf("cilium/ebpf 0.22.0, %s: %v\n", name, err)
			continue
		}
		fmt.Printf("cilium/ebpf 0.22.0, %s: %d programs\n", name, len(spec.Programs))
	}
}
G
{ go mod init probe && go get github.com/cilium/ebpf@v0.22.0 && go build -o probe .; } >build.log 2>&1 || { cat build.log >&2; exit 1; }
./probe >>../seen
cd ..
cat seen
expected='aya-obj 0.3.0, plain: 0 programs
aya-obj 0.3.0, typed: 1 programs
cilium/ebpf 0.22.0, plain: file ../plain.o: load programs: section xdp: no instructions found for symbol pass in section xdp
cilium/ebpf 0.22.0, typed: 1 programs'
[[ $(<seen) == "$expected" ]] || { echo "changed: the results differ from those seen with aya-obj 0.3.0 and cilium/ebpf 0.22.0" >&2; exit 1; }
