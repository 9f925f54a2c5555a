//! RISC-V instructions for one of eBPF over nicety's ten programs, on packets of their usual ways.
//!
//! The cores of `hpu` count RISC-V instructions, with call sequences and lookups in place. Helpers are calls of the environment, so that
//! their bodies do not count. The interpreter counts those of eBPF, and each result is compared with its own.

#[expect(dead_code, reason = "the file serves another target as well, which uses the rest")]
#[path = "../tests/translate/build.rs"]
mod build;
#[expect(dead_code, reason = "the file serves another target as well, which uses the rest")]
#[path = "../tests/translate/card.rs"]
mod card;
#[path = "../tests/translate/ten.rs"]
mod ten;

use ten::{Counts, cases, mean};

fn main() {
    for (width, isa) in [("rv64", "rv64imac_zicsr"), ("rv32", "rv32imac_zicsr")] {
        let all: Option<Vec<Counts>> = cases().iter().map(|case| case.counts(isa, true)).collect();
        let Some(all) = all else {
            println!("{width}: no ziglang in .venv, and no NICETY_ZIG");
            return;
        };
        for counts in &all {
            let ratio = counts.riscv as f64 / counts.ebpf as f64;
            let (name, ebpf, riscv, calls) = (counts.name, counts.ebpf, counts.riscv, counts.calls);
            println!(
                "{width}_{name}  {ratio:.2}  instructions/eBPF instruction ({riscv} for {ebpf}, {calls} calls)"
            );
        }
        println!("{width}_mean  {:.3}  instructions/eBPF instruction", mean(&all));
    }
}
