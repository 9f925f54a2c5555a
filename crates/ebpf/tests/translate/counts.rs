//! nicety's ten programs give the interpreter's results in few instructions.

use super::ten::{Counts, cases, mean};

fn few_instructions(isa: &str, most: f64) {
    let all: Option<Vec<Counts>> = cases().iter().map(|case| case.counts(isa, true)).collect();
    let Some(all) = all else {
        eprintln!("skipped: nicety's programs on {isa} (no ziglang in .venv, and no NICETY_ZIG)");
        return;
    };
    for counts in &all {
        let ratio = counts.riscv as f64 / counts.ebpf as f64;
        println!("{:10} {:5} eBPF {:5} RISC-V {ratio:.2}", counts.name, counts.ebpf, counts.riscv);
    }
    println!("mean {:.3}", mean(&all));
    assert!(mean(&all) <= most);
}

#[test]
fn ten_programs_run_on_rv32_in_few_instructions() {
    few_instructions("rv32imac_zicsr", 3.2);
}

#[test]
fn ten_programs_run_on_rv64_in_few_instructions() {
    few_instructions("rv64imac_zicsr", 1.4);
}

#[test]
fn ten_programs_run_where_misaligned_accesses_trap() {
    for isa in ["rv32imac_zicsr_zba_zbb", "rv64imac_zicsr_zba_zbb"] {
        for case in cases() {
            // The comparison with the interpreter is inside.
            let _ = case.counts(isa, false);
        }
    }
}
