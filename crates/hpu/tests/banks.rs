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
        // By bank: the start of the last access that did not go to a queue nor came from the unit. Then the period for
        // which other than queued accesses occupied it.
        let mut begun = vec![0; timing.banks as usize];
        let mut occupied = vec![Vec::new(); timing.banks as usize];
        for &(pause, word, kind) in &accesses {
            cycle += pause;
            let served = banks.access(cycle, 4 * word, 4, kind);
            prop_assert_eq!(served.cycles, served.waited + u64::from(timing.latency(kind)));
            waited += served.waited;
            let bank = banks.bank_of(4 * word);
            let of_unit = kind == AccessKind::Atomic && timing.atomics == AtomicsAt::Memory;
            let queued = kind == AccessKind::Store && timing.queue > 0;
            let in_unit = if of_unit { u64::from(timing.atomic_occupancy) } else { 0 };
            let begins = cycle + served.waited + in_unit;
            if !queued && !of_unit {
                let last = &mut begun[bank];
                prop_assert!(begins >= *last, "it overtakes another one");
                *last = begins + 1;
            }
            if !queued {
                let at_bank = match kind {
                    AccessKind::Atomic if !of_unit => timing.atomic_occupancy,
                    _ => timing.occupancy,
                };
                occupied[bank].push((begins, begins + u64::from(at_bank)));
            }
        }
        for times in &mut occupied {
            times.sort_unstable();
            prop_assert!(times.is_sorted_by(|before, after| before.1 <= after.0), "two at once: {times:?}");
        }
        let all: Vec<_> = banks.counters().collect();
        prop_assert_eq!(all.iter().map(|bank| bank.accesses).sum::<u64>(), accesses.len() as u64);
        let atomics = accesses.iter().filter(|(.., kind)| *kind == AccessKind::Atomic).count() as u64;
        let plain = accesses.len() as u64 - atomics;
        let once = u64::from(timing.occupancy);
        let (at_bank, at_unit) = match timing.atomics {
            AtomicsAt::Core | AtomicsAt::Bank => (timing.atomic_occupancy.into(), 0),
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
