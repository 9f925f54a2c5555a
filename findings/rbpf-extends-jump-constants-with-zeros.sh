#!/usr/bin/env bash
# Guess: an interpreter of eBPF extends the 32-bit constant of a 64-bit unsigned or equality jump with its sign.
# From:  RFC 9669, 4.3 and 2.2: a jump of class JMP compares 64-bit operands, and imm is a signed 32-bit value.
# True:  the interpreter of rbpf 0.4.1 extends it with zeros for equality and unsigned jumps, and with its sign for signed ones:
#        with -1 in r1, "if r1 == -1" is not taken. A 32-bit modulo by zero keeps the upper half of its destination, where
#        the RFC (4.1) has it zeroed.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cargo init --quiet --bin --name probe .
cat >>Cargo.toml <<'T'
rbpf = { version = "=0.4.1", default-features = false }
T
cat >src/main.rs <<'R'
/// One instruction: opcode, destination, source, offset, constant.
fn op(code: u8, dst: u8, src: u8, offset: i16, imm: i32) -> Vec<u8> {
    let mut bytes = vec![code, src << 4 | dst];
    bytes.extend(offset.to_le_bytes());
    bytes.extend(imm.to_le_bytes());
    bytes
}

fn run(parts: &[Vec<u8>]) -> u64 {
    let program = parts.concat();
    rbpf::EbpfVmNoData::new(Some(&program)).unwrap().execute_program().unwrap()
}

fn main() {
    // The move: 64 bits (-1) or 32 (0xffffffff). Then r0 = 1; if r1 ? -1 goto exit; r0 = 0; exit.
    for (name, mov, jump) in [
        ("-1 == -1", 0xb7, 0x15), ("-1 <= -1, unsigned", 0xb7, 0xb5), ("0xffffffff >= -1, unsigned", 0xb4, 0x35),
        ("-1 <= -1, signed", 0xb7, 0xd5),
    ] {
        let taken = run(&[
            op(mov, 1, 0, 0, -1), op(0xb7, 0, 0, 0, 1), op(jump, 1, 0, 1, -1), op(0xb7, 0, 0, 0, 0), op(0x95, 0, 0, 0, 0),
        ]);
        println!("{name}: {}", taken == 1);
    }
    // r0 = -1; w0 %= w1, which is 0.
    let left = run(&[op(0xb7, 0, 0, 0, -1), op(0xb7, 1, 0, 0, 0), op(0x9c, 0, 1, 0, 0), op(0x95, 0, 0, 0, 0)]);
    println!("-1 mod32 0: {left:#x}");
}
R
cargo run --quiet 2>build.log >seen || { cat build.log >&2; exit 1; }
cat seen
expected='-1 == -1: false
-1 <= -1, unsigned: false
0xffffffff >= -1, unsigned: true
-1 <= -1, signed: true
-1 mod32 0: 0xffffffffffffffff'
[[ $(<seen) == "$expected" ]] || { echo "changed: the results differ from those seen with rbpf 0.4.1" >&2; exit 1; }
