//! Profiles of runs, counted by hand.

use crate::common::*;
use nicety_hpu::asm::*;
use nicety_hpu::profile::{CallPath, Cause, Profile};
use nicety_hpu::{AddressSpace, Core, CycleCosts, Executed, Exit, Region, Totals};
use std::collections::BTreeMap;

const COSTS: CycleCosts = CycleCosts {
    mul: 3,
    load_use: 1,
    branch_taken: 3,
    jump: 2,
    jump_register: 2,
    ..CycleCosts::SINGLE_CYCLE
};

/// Cycles by instruction and cause, and executions by instruction.
#[derive(Debug, Default, PartialEq)]
struct Found {
    cycles: BTreeMap<(u32, Cause), u64>,
    executions: BTreeMap<u32, u64>,
    paths: Vec<CallPath>,
    by_path: BTreeMap<u32, u64>,
}

/// Profiles `runs` runs of a program with slow memory, in slices of `slice` cycles.
fn found(words: &[u32], slice: u64, runs: u64) -> Found {
    let core = Core { costs: COSTS, ..Core::default() };
    let mut machine = Machine::on(&core, words);
    let mut totals = Totals::of(&machine.image);
    let mut profile = Profile::default();
    for _ in 0..runs {
        machine.context.set_cycle(0);
        machine.call(&[MEMORY]);
        machine.context.set_cycle(10);
        profile.begin(false, totals.paths(), CODE, 10);
        loop {
            let Machine { image, memory, stack, context, reservations } = &mut machine;
            let mut space = AddressSpace::new()
                .with(Region::stack("stack", STACK, stack, GUARD))
                .with(Region::memory("memory", MEMORY, memory).latency(4, 5).caused_by(Cause::L1));
            space.count_in(&mut profile);
            match context.run(image, &mut space, reservations, context.cycle().saturating_add(slice)) {
                Exit::Limit => {}
                Exit::Return(_) => break,
                exit => panic!("{exit:?}"),
            }
        }
        totals.add(&profile);
    }
    let mut found = Found::default();
    let all = totals.paths().borrow().all().to_vec();
    totals.for_each(&machine.image, |Executed { path, pc, cause, cycles, executions }| {
        let at = pc - CODE;
        if cycles > 0 {
            *found.cycles.entry((at, cause)).or_default() += cycles;
            *found.by_path.entry(path).or_default() += cycles;
        }
        if executions > 0 {
            *found.executions.entry(at).or_default() += executions;
        }
    });
    found.paths = all;
    found
}

#[test]
fn causes_are_those_of_the_cost_table() {
    let words = [
        addi(T1, ZERO, 2),
        lw(T0, 0, A0),      // 4: twice, 4 cycles of memory each
        add(T0, T0, T0),    // 8: waits for it
        sw(T0, 4, A0),      // 12: 5 cycles of memory
        mul(T2, T0, T0),    // 16
        addi(T1, T1, -1),   // 20
        bne(T1, ZERO, -20), // 24: taken once
        ret(),
    ];
    // Slices of any length give the same.
    for slice in [u64::MAX, 1, 3, 7] {
        let found = found(&words, slice, 1);
        let cycles: Vec<_> =
            found.cycles.into_iter().map(|((pc, cause), cycles)| (pc, cause, cycles)).collect();
        assert_eq!(
            cycles,
            [
                (0, Cause::Issue, 1),
                (0, Cause::Dispatch, 10),
                (4, Cause::Issue, 2),
                (4, Cause::L1, 8),
                (8, Cause::Issue, 2),
                (8, Cause::LoadUse, 2),
                (12, Cause::Issue, 2),
                (12, Cause::L1, 10),
                (16, Cause::Issue, 2),
                (16, Cause::Execute, 4),
                (20, Cause::Issue, 2),
                (24, Cause::Issue, 2),
                (24, Cause::Branch, 2),
                (28, Cause::Issue, 1),
                (28, Cause::Branch, 1),
            ],
            "slices of {slice}"
        );
        let executions: Vec<_> = found.executions.into_values().collect();
        assert_eq!(executions, [1, 2, 2, 2, 2, 2, 2, 1]);
    }
}

#[test]
fn calls_have_paths() {
    // The entry calls a function twice, at 24, which calls another one at 36.
    let words = [
        mv(S0, RA),
        jal(RA, 20), // 4
        jal(RA, 16), // 8
        mv(RA, S0),  // 12
        ret(),       // 16
        nop(),
        mv(S1, RA),        // 24
        jal(RA, 8),        // 28: to 36
        jalr(ZERO, S1, 0), // 32
        ret(),             // 36
    ];
    for slice in [u64::MAX, 1] {
        let found = found(&words, slice, 3);
        let at = |caller, offset| CallPath { caller, function: CODE + offset };
        assert_eq!(found.paths, [at(None, 0), at(Some(0), 24), at(Some(1), 36)]);
        // Of each run: 10 cycles of start, two moves, two jumps of 2 and a return of 2; twice 1 + 2 + 2; twice 2.
        assert_eq!(found.by_path.into_values().collect::<Vec<_>>(), [3 * 18, 3 * 10, 3 * 4]);
    }
}

#[test]
fn a_sample_has_every_nth_run() {
    let core = Core::default();
    let machine = Machine::on(&core, &[ret()]);
    let mut totals = Totals::of(&machine.image);
    let mut profile = Profile::default();
    for run in 0..20_000u64 {
        // The number of the run, as the cycles of its start.
        profile.begin(false, totals.paths(), CODE, run + 1);
        totals.add(&profile);
    }
    let shares: Vec<_> = totals.counters(&machine.image).collect();
    let cycles = |(counter, [through, taken]): (usize, [u64; 2])| -> u64 {
        shares[counter].iter().map(|share| through * share.cycles[0] + taken * share.cycles[1]).sum()
    };
    let numbers: Vec<u64> = totals.sample().map(|run| run.counts().map(cycles).sum::<u64>() - 1).collect();
    assert_eq!(numbers, (0..20_000).step_by(4).collect::<Vec<_>>());
    assert_eq!((totals.runs(), totals.cycles()), (20_000, 20_000 * 20_001 / 2));
}
