//! RISC-V instructions for one of eBPF over nicety's ten programs, on packets of their usual ways: without and with the bodies of helpers.
//!
//! The first count is that of the benchmark `translate` of `nicety-ebpf`: call sequences and lookups in place count, and helpers are calls
//! of the environment. The second one runs the same program with the runtime of a card, and counts the instructions of helpers as well.

#[expect(dead_code, reason = "the file serves another target as well, which uses the rest")]
#[path = "../../ebpf/tests/translate/build.rs"]
mod build;
#[expect(dead_code, reason = "the file serves another target as well, which uses the rest")]
#[path = "../../ebpf/tests/translate/card.rs"]
mod card;
#[expect(dead_code, reason = "the file serves another target as well, which uses the rest")]
#[path = "../tests/card.rs"]
mod runtime;
#[expect(dead_code, reason = "the file serves another target as well, which uses the rest")]
#[path = "../../ebpf/tests/translate/ten.rs"]
mod ten;
#[expect(dead_code, reason = "the file serves another target as well, which uses the rest")]
#[path = "../tests/toolchain.rs"]
mod toolchain;

use nicety_xdp::Request;
use ten::{Case, cases};
use toolchain::{Cores, compiled};

/// The entries of a case's maps as JSON, by the maps' names.
fn maps(case: &Case) -> Vec<(&'static str, String)> {
    let mut maps: Vec<(&'static str, Vec<String>)> = Vec::new();
    for (name, key, value) in &case.entries {
        let entry = format!("{{\"key\": {key:?}, \"value\": {value:?}}}");
        match maps.iter_mut().find(|(known, _)| known == name) {
            Some((_, entries)) => entries.push(entry),
            None => maps.push((*name, vec![entry])),
        }
    }
    maps.into_iter().map(|(name, entries)| (name, format!("[{}]", entries.join(", ")))).collect()
}

/// The instructions of a program on its packets, with those of helpers.
fn with_bodies(case: &Case, cores: Cores) -> u64 {
    let file = compiled(case.name);
    let request = Request { cpus: 1, program: None, ..runtime::request("", cores, &maps(case)) };
    let mut card = runtime::Card::new(case.name, &file, cores, &request);
    case.packets.iter().map(|packet| card.program(packet, 0).1).sum()
}

fn main() {
    for (width, cores) in [("rv64", Cores::Rv64), ("rv32", Cores::Rv32)] {
        let (mut ebpf, mut without, mut with) = (0, 0, 0);
        for case in cases() {
            let Some(counts) = case.counts(cores.isa(), true) else {
                println!("{width}: no ziglang in .venv, and no NICETY_ZIG");
                return;
            };
            let bodies = with_bodies(&case, cores);
            let ratio = |riscv: u64| riscv as f64 / counts.ebpf as f64;
            println!(
                "{width}_{}  {:.2}  instructions/eBPF instruction, {:.2} with helpers' bodies ({} and {bodies} for {}, {} calls)",
                case.name,
                ratio(counts.riscv),
                ratio(bodies),
                counts.riscv,
                counts.ebpf,
                counts.calls
            );
            (ebpf, without, with) = (ebpf + counts.ebpf, without + counts.riscv, with + bodies);
        }
        let ratio = |riscv: u64| riscv as f64 / ebpf as f64;
        println!(
            "{width}_sum_without_helpers  {without}  instructions ({:.3} for one of {ebpf} of eBPF)",
            ratio(without)
        );
        println!(
            "{width}_sum_with_helpers  {with}  instructions ({:.3} for one of {ebpf} of eBPF)",
            ratio(with)
        );
    }
}
