//! Tests properties of random programs.

use crate::{Rig, program, spec};
use nicety_hpu::Executed;
use nicety_hpu::asm::*;
use nicety_hpu::profile::Cause;
use nicety_nic_nfp::{ContextCounters, MemoryKind, ProgramProfile, map, number};
use proptest::prelude::*;

/// A piece of a process.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Compute(u8),
    Crc,
    Load(u8),
    /// Adds to a word that all processes share.
    Add(u8, u8),
    /// Writes a private block.
    Block(u8),
    Yield,
}

fn piece() -> impl Strategy<Value = Piece> {
    prop_oneof![
        (1..40u8).prop_map(Piece::Compute),
        Just(Piece::Crc),
        (0..4u8).prop_map(Piece::Load),
        (0..4u8, 1..100u8).prop_map(|(memory, value)| Piece::Add(memory, value)),
        (0..4u8).prop_map(Piece::Block),
        Just(Piece::Yield),
    ]
}

/// Returns the code of a process with these pieces. Register a0 has the number of the process.
fn assemble(pieces: &[Piece]) -> Vec<u32> {
    let set = |register, value: i32| addi(register, ZERO, value);
    let memory = |which: u8| lui(T0, MemoryKind::ALL[which as usize].base() >> 12);
    let mut words = vec![mv(S0, A0)];
    for &piece in pieces {
        match piece {
            Piece::Compute(count) => words.extend(vec![nop(); count as usize]),
            Piece::Crc => words.extend([set(A7, number::CRC32 as i32), ecall()]),
            Piece::Load(which) => words.extend([memory(which), lw(T1, 4, T0)]),
            Piece::Add(which, value) => {
                words.extend([memory(which), set(T1, value.into()), amoadd_w(ZERO, T1, T0)])
            }
            Piece::Block(which) => words.extend([
                memory(which),
                slli(T1, S0, 4),
                add(A0, T0, T1),
                addi(A0, A0, 64),
                // The process reads its own stack, which is still empty and contains zeros.
                addi(A1, SP, -16),
                sw(S0, 0, A1),
                set(A2, 16),
                set(A7, number::WRITE as i32),
                ecall(),
            ]),
            Piece::Yield => words.extend([set(A7, number::YIELD as i32), ecall()]),
        }
    }
    words.push(ret());
    words
}

/// Returns the results of a run: its last cycle, all counters, and the first bytes of the memories.
fn outcome(
    processes: &[Vec<Piece>],
    cores: usize,
    contexts: usize,
    profiled: bool,
) -> (u64, String, Vec<Vec<u8>>) {
    let spec = spec(&["hpu.cores=6", "hpu.island=2"]);
    let mut rig = Rig::new(&spec);
    if profiled {
        rig.nfp.profile();
    }
    let mut code = Vec::new();
    let entries: Vec<u32> = processes
        .iter()
        .map(|pieces| {
            let entry = map::CODE + 4 * code.len() as u32;
            code.extend(assemble(pieces));
            entry
        })
        .collect();
    let program = program(&spec, &code);
    (0..cores).for_each(|core| rig.nfp.load(core, &program, contexts).unwrap());
    // The processes run in waves. Each wave has one process per context.
    for (wave, entries) in entries.chunks(cores * contexts).enumerate() {
        for (place, &entry) in entries.iter().enumerate() {
            let process = (wave * cores * contexts + place) as u32;
            rig.nfp.start(place % cores, place / cores, entry, &[process]);
        }
        rig.run();
    }
    let end = rig.nfp.cycle();
    let mut counters = String::new();
    for core in 0..6 {
        let of_core = rig.nfp.core_counters(core);
        assert_eq!(of_core.elapsed(), end, "{of_core:?}");
        let mut computing = 0;
        for context in 0..8 {
            let of_context = rig.nfp.context_counters(core, context);
            assert_eq!(of_context.elapsed(), end, "{of_context:?}");
            computing += of_context.computing;
            counters += &format!("{of_context:?}");
        }
        assert_eq!(of_core.computing, computing);
        counters += &format!("{of_core:?}");
    }
    if profiled {
        check_profile(&rig);
    }
    let memories = [(MemoryKind::Imem, 0), (MemoryKind::Emem, 0)].map(|(kind, island)| {
        let mut bytes = vec![0; 1024];
        rig.nfp.memory(kind, island).peek(0, &mut bytes).unwrap();
        bytes
    });
    (end, counters, memories.to_vec())
}

/// Checks that the cycles of all instructions are those of the contexts, by cause.
fn check_profile(rig: &Rig) {
    let of = |core| (0..8).map(move |context| rig.nfp.context_counters(core, context));
    let all = (0..6).flat_map(of).fold(ContextCounters::default(), |sum, of_context| sum + of_context);
    let [ProgramProfile { image, totals, processes }] = &rig.nfp.take_profiles()[..] else {
        panic!("one program");
    };
    let by_process = processes.iter().fold(ContextCounters::default(), |sum, process| sum + process.counters);
    assert_eq!(by_process, ContextCounters { idle: 0, ..all });
    let mut found = ContextCounters { references: all.references, ..ContextCounters::default() };
    totals.for_each(image, |Executed { cause, cycles, executions, .. }| {
        found.instructions += executions;
        *match cause {
            Cause::Memory | Cause::Bank => &mut found.asleep,
            Cause::Ready => &mut found.ready,
            _ => &mut found.computing,
        } += cycles;
    });
    assert_eq!(found, by_process);
    assert_eq!(totals.cycles(), found.elapsed());
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(40))]

    #[test]
    fn counters_add_up_and_results_do_not_depend_on_contexts(
        processes in prop::collection::vec(prop::collection::vec(piece(), 0..12), 1..24),
        cores in 1..6usize,
        contexts in 1..=8usize,
    ) {
        let (end, counters, memories) = outcome(&processes, cores, contexts, false);
        let again = outcome(&processes, cores, contexts, true);
        prop_assert_eq!((end, counters, memories.clone()), again);
        prop_assert_eq!(memories, outcome(&processes, 1, 1, false).2);
    }
}
