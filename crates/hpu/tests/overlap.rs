//! Cores that overlap instructions: cycles computed by hand, and bounds that hold for any code.

use crate::common::*;
use nicety_hpu::asm::*;
use nicety_hpu::{Core, CycleCosts, Exit, Overlap, Region};
use proptest::prelude::*;

/// Two instructions per cycle, and no other limit.
const TWO: Overlap = Overlap { width: 2, window: 64, alus: 8, loads: 8, stores: 8, mispredict: 10 };

const COSTS: CycleCosts = CycleCosts { mul: 3, div: 12, load: 2, load_use: 1, ..CycleCosts::SINGLE_CYCLE };

fn machine(overlap: Overlap, words: &[u32]) -> Machine {
    let core = Core { costs: COSTS, overlap: Some(overlap), ..everything() };
    Machine::on(&core, &[words, &[ret()]].concat())
}

/// Returns the cycle in which the last of the words and the final return have left.
fn cycles(overlap: Overlap, words: &[u32]) -> u64 {
    let mut machine = machine(overlap, words);
    machine.call(&[MEMORY, MEMORY + 64]);
    assert!(matches!(machine.finish(), Exit::Return(_)));
    machine.context.cycle()
}

#[test]
fn as_many_enter_in_a_cycle_as_the_core_is_wide() {
    let independent = [addi(T0, ZERO, 1), addi(T1, ZERO, 1), addi(T2, ZERO, 1), addi(T3, ZERO, 1), nop()];
    // Six with the return, of one cycle each.
    for (width, expected) in [(1, 6), (2, 3), (3, 2), (4, 2), (6, 1)] {
        assert_eq!(cycles(Overlap { width, ..TWO }, &independent), expected, "width {width}");
    }
    // One unit for all of them: each is arithmetic or a jump.
    assert_eq!(cycles(Overlap { alus: 1, ..TWO }, &independent), 6);
}

#[test]
fn a_chain_takes_the_sum_of_its_latencies() {
    // 3 + 3 + 1; the return enters in cycle 1 and leaves with the addition before it.
    assert_eq!(cycles(TWO, &[mul(T0, A0, A0), mul(T0, T0, T0), addi(T0, T0, 1)]), 7);
    // The second chain hides behind the first: both products leave in cycle 6, and the return in the next.
    assert_eq!(cycles(TWO, &[mul(T0, A0, A0), mul(T1, A1, A1), mul(T0, T0, T0), mul(T1, T1, T1)]), 7);
    // The second writer of t0 does not wait for the first. So the products are ready when the division leaves in cycle
    // 12, and then two per cycle leave.
    assert_eq!(cycles(TWO, &[div(T0, A0, A1), addi(T0, ZERO, 1), mul(T1, T0, T0), mul(T1, T1, T1)]), 14);
    // A load's value is ready 2 + 1 cycles after it begins.
    assert_eq!(cycles(TWO, &[lw(T0, 0, A0), addi(T0, T0, 1)]), 4);
}

#[test]
fn the_window_keeps_instructions_out_until_the_oldest_leaves() {
    let words = [div(T0, A0, A1), addi(T1, ZERO, 1), addi(T2, ZERO, 1), mul(T3, A0, A0), mul(T3, T3, T3)];
    // The division leaves in cycle 12 in any case, and two per cycle leave. It and the first addition leave in 12, two
    // in 13, the second product and the return in 14.
    assert_eq!(cycles(TWO, &words), 14);
    // Four: the last product enters in cycle 12 and has its result in 15.
    assert_eq!(cycles(Overlap { window: 4, ..TWO }, &words), 15);
    // Three: the first product enters in 12, the second begins at 15.
    assert_eq!(cycles(Overlap { window: 3, ..TWO }, &words), 18);
    // One: each enters when the one before leaves, 12 + 1 + 1 + 3 + 3 + 1.
    assert_eq!(cycles(Overlap { window: 1, ..TWO }, &words), 21);
}

#[test]
fn a_load_waits_for_a_store_to_its_bytes_alone() {
    let after = |offset| [div(T0, A0, A1), sw(T0, 0, A0), lw(T1, offset, A0), addi(T1, T1, 1)];
    // The store has its value in 12 and is done in 13. The load's value is ready 3 cycles later.
    assert_eq!(cycles(TWO, &after(0)), 17);
    // Another word: the load and the sum are done at the same time as store and division, and leave after them.
    assert_eq!(cycles(TWO, &after(4)), 14);
    // One byte of the word.
    assert_eq!(cycles(TWO, &[div(T0, A0, A1), sb(T0, 3, A0), lw(T1, 0, A0), addi(T1, T1, 1)]), 17);
    assert_eq!(cycles(TWO, &[div(T0, A0, A1), sb(T0, 4, A0), lw(T1, 0, A0), addi(T1, T1, 1)]), 14);
    // Through another register.
    assert_eq!(cycles(TWO, &[div(T0, A0, A1), sw(T0, 64, A0), lw(T1, 0, A1), addi(T1, T1, 1)]), 17);
}

#[test]
fn units_for_loads_and_stores_are_counted() {
    let loads = [lw(T0, 0, A0), lw(T1, 4, A0), lw(T2, 8, A0), lw(T3, 12, A0)];
    // They begin in cycles 0, 0, 1 and 1, or one per cycle. The last one takes two.
    assert_eq!(cycles(TWO, &loads), 4);
    assert_eq!(cycles(Overlap { loads: 1, ..TWO }, &loads), 5);
    let stores = [sw(T0, 0, A0), sw(T1, 4, A0), sw(T2, 8, A0), sw(T3, 12, A0)];
    assert_eq!(cycles(TWO, &stores), 3);
    assert_eq!(cycles(Overlap { stores: 1, loads: 1, ..TWO }, &stores), 4);
    // A load and a store begin in the same cycle.
    let both = [lw(T0, 0, A0), sw(T1, 4, A0), lw(T2, 8, A0), sw(T3, 12, A0)];
    assert_eq!(cycles(Overlap { stores: 1, loads: 1, ..TWO }, &both), 4);
}

#[test]
fn branches_backwards_are_predicted_taken() {
    // Forward and not taken: two cycles for all four, including the return.
    assert_eq!(cycles(TWO, &[bne(ZERO, ZERO, 8), nop(), nop()]), 2);
    // Forward and taken: the branch has its result in cycle 1, and the return enters ten cycles later.
    assert_eq!(cycles(TWO, &[beq(ZERO, ZERO, 8), nop()]), 12);
    // A jump is predicted right. The next instruction enters in the next cycle.
    assert_eq!(cycles(TWO, &[j(8), nop()]), 2);
    // Three rounds of two instructions, a cycle each. The last branch is not taken. It has its result in cycle 1 + 3,
    // since the chain of additions begins in cycle 0. The return enters ten cycles later.
    let three = [addi(T0, ZERO, 3), addi(T0, T0, -1), bne(T0, ZERO, -4)];
    // t0 is ready in 1, 2, 3, 4. The last branch begins in 4 and has its result in 5.
    assert_eq!(cycles(TWO, &three), 5 + 10 + 1);
    // A jump through a register is predicted wrong: its register is ready in 1, and its target enters in 12.
    assert_eq!(cycles(TWO, &[auipc(T1, 0), jalr(ZERO, T1, 8)]), 13);
}

#[test]
fn ordered_instructions_wait_for_all_earlier_ones() {
    let mut machine = machine(TWO, &[div(T0, A0, A1), lw(T1, 0, A0), fence(), addi(T2, ZERO, 1)]);
    machine.call(&[MEMORY, 3]);
    assert!(matches!(machine.slice(u64::MAX), Exit::Order(_)));
    assert_eq!(machine.context.cycle(), 12);
    machine.perform().unwrap();
    assert_eq!(machine.context.cycle(), 13);
    assert!(matches!(machine.slice(u64::MAX), Exit::Return(_)));
    assert_eq!(machine.context.cycle(), 14);
}

#[test]
fn an_atomic_operation_waits_for_its_address() {
    let mut machine = machine(TWO, &[lw(T0, 0, A0), amoadd_w(T1, ZERO, T0), addi(T1, T1, 1)]);
    machine.set_word(0, MEMORY + 8);
    machine.call(&[MEMORY]);
    assert!(matches!(machine.slice(u64::MAX), Exit::Order(_)));
    // The load has left in cycle 2, and its value can be used in 3.
    assert_eq!(machine.context.cycle(), 3);
    machine.perform().unwrap();
    // Its result is ready in cycle 4 and can be used in 5.
    assert!(matches!(machine.slice(u64::MAX), Exit::Return(_)));
    assert_eq!(machine.context.cycle(), 6);
}

#[test]
fn the_latency_of_a_region_is_the_results() {
    let mut machine = machine(TWO, &[lw(T0, 0, A0), addi(T1, ZERO, 1), addi(T0, T0, 1)]);
    machine.call(&[MEMORY]);
    let exit = machine.slice_in(u64::MAX, |memory| Region::memory("far", MEMORY, memory).latency(20, 20));
    assert!(matches!(exit, Exit::Return(_)));
    assert_eq!(machine.context.cycle(), 2 + 20 + 1 + 1);
}

#[test]
fn no_instruction_enters_at_the_cycle_limit() {
    let mut machine = machine(TWO, &[addi(T0, T0, 1), j(-4)]);
    machine.call(&[]);
    machine.context.call(&machine.image, CODE, STACK_TOP, &[], 1000);
    let trap = machine.trap();
    assert!(trap.to_string().contains("1000 cycles"), "{trap}");
    assert_eq!(machine.context.cycle(), 1000);
}

/// Straight code with loops of a few rounds: arithmetic, multiplications, loads and stores of a few words.
fn body() -> impl Strategy<Value = Vec<u32>> {
    let registers = || prop::sample::select(vec![T0, T1, T2, T3, S0, A5]);
    let offset = || (0..8i32).prop_map(|word| 4 * word);
    let instruction = prop_oneof![
        4 => (registers(), registers(), registers()).prop_map(|(d, a, b)| add(d, a, b)),
        2 => (registers(), registers(), registers()).prop_map(|(d, a, b)| mul(d, a, b)),
        1 => (registers(), registers(), registers()).prop_map(|(d, a, b)| divu(d, a, b)),
        3 => (registers(), offset()).prop_map(|(d, offset)| lw(d, offset, A0)),
        3 => (registers(), offset()).prop_map(|(s, offset)| sw(s, offset, A0)),
        1 => (registers(), offset()).prop_map(|(s, offset)| sb(s, offset + 1, A0)),
        1 => (registers(), registers()).prop_map(|(a, b)| bltu(a, b, 8)),
        1 => registers().prop_map(|d| amoadd_w(d, d, A0)),
    ];
    (prop::collection::vec(instruction, 1..40), 1..4i32).prop_map(|(mut words, rounds)| {
        words.insert(0, addi(A7, ZERO, rounds));
        // The target of a branch over the last one.
        words.push(nop());
        words.push(addi(A7, A7, -1));
        words.push(bne(A7, ZERO, 4 - 4 * words.len() as i32));
        words
    })
}

fn overlaps() -> impl Strategy<Value = Overlap> {
    let few = || 1..5u16;
    (few(), 1..70u16, few(), few(), few()).prop_map(|(width, window, alus, loads, stores)| Overlap {
        width,
        window,
        alus,
        loads,
        stores,
        mispredict: 0,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases(500)) })]

    /// With the latencies of an in-order core, and branches that cost no more.
    #[test]
    fn never_slower_than_in_order_nor_faster_than_its_width(words in body(), overlap in overlaps()) {
        let in_order = Core { costs: COSTS, ..everything() };
        let run = |core: &Core| {
            let mut machine = Machine::on(core, &[&words[..], &[ret()]].concat());
            machine.call(&[MEMORY]);
            assert!(matches!(machine.finish(), Exit::Return(_)));
            machine
        };
        let (slow, fast) = (run(&in_order), run(&Core { overlap: Some(overlap), ..in_order }));
        prop_assert_eq!(&slow.memory, &fast.memory);
        for register in 0..32 {
            prop_assert_eq!(slow.context.reg(register), fast.context.reg(register), "x{}", register);
        }
        let instructions = fast.context.instret();
        prop_assert_eq!(slow.context.instret(), instructions);
        prop_assert!(fast.context.cycle() <= slow.context.cycle());
        prop_assert!(fast.context.cycle() >= instructions.div_ceil(u64::from(overlap.width)));
        // More of every resource is never slower, since each instruction begins in its order if units are free.
        let wide = Overlap { width: 64, window: 4096, alus: 64, loads: 64, stores: 64, mispredict: 0 };
        let wide = run(&Core { overlap: Some(wide), ..in_order });
        prop_assert!(wide.context.cycle() <= fast.context.cycle());
    }
}
