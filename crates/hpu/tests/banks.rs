//! Banks under random accesses in the order of cycles.

use crate::common::cases;
use nicety_hpu::{AccessKind, AtomicsAt, BankTiming, Banks};
use proptest::prelude::*;

fn timing() -> impl Strategy<Value = BankTiming> {
    let places = prop::sample::select(vec![AtomicsAt::Core, AtomicsAt::Bank, AtomicsAt::Memory]);
    let sizes = prop::sample::select(vec![(4, 4), (8, 4), (64, 8), (64, 64)]);
    let latencies = (1u32..30, 1u32..30, 1u32..30)
        .prop_map(|(load, store, atomic)| BankTiming::one_bank(load, store, atomic));
    (latencies, 1u32..9, sizes, (1u32..6, 1u32..9), places, 0u32..4).prop_map(
        |(latencies, banks, (interleave, width), occupied, atomics, queue)| {
            let (occupancy, atomic_occupancy) = occupied;
            BankTiming { banks, interleave, width, occupancy, atomics, atomic_occupancy, queue, ..latencies }
        },
    )
}

fn accesses() -> impl Strategy<Value = Vec<(u64, u64, AccessKind)>> {
    let kind = prop::sample::select(vec![AccessKind::Load, AccessKind::Store, AccessKind::Atomic]);
    prop::collection::vec((0u64..4, 0u64..64, kind), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(200)))]

    #[test]
    fn no_access_is_lost_and_none_overtakes_another(timing in timing(), accesses in accesses()) {
        let mut banks = Banks::new(timing);
        let (mut cycle, mut waited) = (0, 0);
        // By bank, when the last access that did not go to a queue began.
        let mut begun = vec![0; timing.banks as usize];
        for &(pause, word, kind) in &accesses {
            cycle += pause;
            let served = banks.access(cycle, 4 * word, 4, kind);
            let latency = match kind {
                AccessKind::Load => timing.load,
                AccessKind::Store => timing.store,
                AccessKind::Atomic => timing.atomic,
            };
            prop_assert_eq!(served.cycles, served.waited + u64::from(latency));
            waited += served.waited;
            if kind != AccessKind::Store || timing.queue == 0 {
                let last = &mut begun[banks.bank_of(4 * word)];
                prop_assert!(cycle + served.waited >= *last, "it overtakes another one");
                *last = cycle + served.waited + 1;
            }
        }
        let all: Vec<_> = banks.counters().collect();
        prop_assert_eq!(all.iter().map(|bank| bank.accesses).sum::<u64>(), accesses.len() as u64);
        let atomics = accesses.iter().filter(|(.., kind)| *kind == AccessKind::Atomic).count() as u64;
        let plain = accesses.len() as u64 - atomics;
        let once = u64::from(timing.occupancy);
        let (at_bank, at_unit) = match timing.atomics {
            AtomicsAt::Core => (u64::from(timing.load) + once, 0),
            AtomicsAt::Bank => (timing.atomic_occupancy.into(), 0),
            AtomicsAt::Memory => (once, u64::from(timing.atomic_occupancy)),
        };
        let busy: u64 = all.iter().map(|bank| bank.busy).sum();
        prop_assert_eq!((busy, banks.unit().busy), (plain * once + atomics * at_bank, atomics * at_unit));
        let counted = all.iter().map(|bank| bank.waited).sum::<u64>() + banks.unit().waited;
        prop_assert_eq!(counted, waited);
        let mut again = Banks::new(timing);
        let mut cycle = 0;
        for &(pause, word, kind) in &accesses {
            cycle += pause;
            again.access(cycle, 4 * word, 4, kind);
        }
        prop_assert_eq!(again.counters().collect::<Vec<_>>(), all);
    }
}
