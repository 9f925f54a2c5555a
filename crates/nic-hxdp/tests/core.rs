//! Cycles of frames, worked out by hand.

use nicety_ebpf::Trace;
use nicety_nic_hxdp::{Cycles, DESIGN, Disposition, HxdpSpec, Pipeline, Through, cycles};
use nicety_spec::{SHIPPED, Spec, parse_override};
use proptest::prelude::*;
use std::sync::Arc;

pub(crate) fn spec(overrides: &[&str]) -> Result<Arc<dyn nicety_nic_core::CardSpec>, String> {
    let overrides: Vec<_> = overrides.iter().map(|text| parse_override(text).unwrap()).collect();
    let spec = Spec::load("hxdp-sume", &overrides, SHIPPED).map_err(|errors| errors.to_string())?;
    let (card, _) = nicety_nic_core::read(&spec, &[DESIGN]).map_err(|errors| errors.to_string())?;
    Ok(card)
}

pub(crate) fn sume() -> HxdpSpec {
    spec(&[]).unwrap().of::<HxdpSpec>().unwrap().clone()
}

#[test]
fn a_dropped_frame_takes_its_first_bytes_a_row_and_the_handover() {
    let early = Trace { rows: 1, ended_early: true, ..Trace::default() };
    let of = Cycles { transfer: 2, program: 2, waiting: 0, helpers: 0, core: 3 };
    assert_eq!(cycles(&sume(), &early, 60, &[]), of);
    // The pipeline runs empty without an early exit.
    let late = Trace { ended_early: false, ..early };
    assert_eq!(cycles(&sume(), &late, 60, &[]), Cycles { program: 6, core: 7, ..of });
}

#[test]
fn a_long_frame_hides_a_short_program() {
    let trace = Trace { rows: 9, ended_early: true, ..Trace::default() };
    // 1514 bytes are 48 cycles.
    assert_eq!(cycles(&sume(), &trace, 1514, &[]).core, 49);
}

#[test]
fn the_core_waits_for_bytes_that_are_not_there() {
    // Row 0 reads bytes 57 to 60, of the second cycle, and row 1 nothing that is missing.
    let trace = Trace { rows: 2, ended_early: true, reach: vec![(0, 60)], ..Trace::default() };
    let found = cycles(&sume(), &trace, 60, &[]);
    assert_eq!((found.waiting, found.program), (1, 4));
    // Row 3 runs in cycle 4, and byte 200 comes in cycle 6: the row waits for 7 - 4 cycles.
    let trace = Trace { rows: 4, reach: vec![(0, 20), (3, 200)], ..trace };
    assert_eq!(cycles(&sume(), &trace, 1000, &[]).waiting, 3);
}

#[test]
fn a_long_key_takes_further_accesses() {
    let trace = Trace { rows: 5, ended_early: true, helpers: vec![(2, 1)], ..Trace::default() };
    assert_eq!(cycles(&sume(), &trace, 60, &[32]).helpers, 0);
    assert_eq!(cycles(&sume(), &trace, 60, &[33]).helpers, 1);
}

#[test]
fn frames_leave_while_the_core_has_the_next_one() {
    let spec = sume();
    let mut pipeline = Pipeline::new(&spec);
    // 5 cycles of the core, 6.4 ns each; 2 and 5 cycles of the emission.
    let of = Cycles { transfer: 2, program: 4, waiting: 0, helpers: 0, core: 5 };
    let first = pipeline.pass(0, &of, Disposition::Emitted(60));
    assert_eq!(first, Through { begins: 0, decided: 25_600, done: 25_600 + 44_800 });
    let second = pipeline.pass(0, &of, Disposition::Emitted(60));
    assert_eq!((second.begins, second.decided, second.done), (32_000, 57_600, 115_200));
    // The core waits until the second frame begins to leave, in 70.4 ns.
    let third = pipeline.pass(0, &of, Disposition::Dropped);
    assert_eq!((third.begins, third.done), (70_400, 96_000));
    assert_eq!(pipeline.core_busy.ps(), 96_000);
}

#[test]
fn a_full_input_queue_takes_no_frame() {
    let small = spec(&["buffer.packets=2"]).unwrap();
    let mut pipeline = Pipeline::new(small.of::<HxdpSpec>().unwrap());
    let of = Cycles { core: 10, program: 9, ..Cycles::default() };
    let mut taken = 0;
    for _ in 0..5 {
        if pipeline.takes(1) {
            pipeline.pass(1, &of, Disposition::Dropped);
            taken += 1;
        }
    }
    // One is in the core, and two in the queue.
    assert_eq!(taken, 3);
    assert!(pipeline.takes(1 + 64_000));
}

#[test]
fn mistakes_in_a_spec_name_the_key() {
    for (text, part) in [
        ("core.lanes=9", "core.lanes"),
        ("core.branches=\"some\"", "core.branches"),
        ("maps.key=\"0 B\"", "maps.key"),
        ("helpers.tail_call=1", "helpers.tail_call"),
    ] {
        let error = spec(&[text]).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

proptest! {
    #[test]
    fn more_rows_never_take_less_time(rows in 0u64..100, bytes in 60u64..1514, reach in prop::collection::vec((0u64..100, 1u32..1600), 0..4)) {
        let mut reach = reach;
        reach.sort_unstable();
        let trace = Trace { rows, ended_early: true, reach, ..Trace::default() };
        let more = Trace { rows: rows + 1, ..trace.clone() };
        let (a, b) = (cycles(&sume(), &trace, bytes, &[]), cycles(&sume(), &more, bytes, &[]));
        prop_assert!(a.core <= b.core && a.program >= rows && a.core > a.transfer);
    }
}
