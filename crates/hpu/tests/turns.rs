//! Accesses to ordered memory with turns inside a slice are the same as those that end slices and are performed after
//! them.

use crate::common::*;
use nicety_hpu::asm::*;
use nicety_hpu::{
    AddressSpace, Cache, CacheShape, Core, Exit, OrderPoint, OrderedWords, Overlap, Region, Turns,
};
use proptest::prelude::*;

/// The cycles of slices: few, so that they also end inside code.
const SLICE: u64 = 9;

/// The requests, and their costs: by cycle and place, some of them zero. Those with a set bit do not get their turn.
struct Asked {
    refused: u64,
    asked: Vec<(u64, u32, OrderPoint)>,
}

impl Asked {
    fn extra(cycle: u64, point: OrderPoint) -> u64 {
        match point {
            OrderPoint::Memory { address, .. } => (cycle ^ u64::from(address >> 2)) % 4 * 3,
            _ => 0,
        }
    }
}

impl Turns for Asked {
    fn turn(&mut self, cycle: u64, pc: u32, point: OrderPoint) -> Option<u64> {
        if self.refused >> (cycle % 64) & 1 != 0 {
            return None;
        }
        self.asked.push((cycle, pc, point));
        Some(Asked::extra(cycle, point))
    }
}

/// The points at which slices began or an access had its turn, and the machine at the end.
type Course = (Vec<(u64, u32, OrderPoint)>, Vec<u64>, Machine);

/// Runs code to its end. `turns` makes accesses request theirs.
fn course(words: &[u32], turns: bool, refused: u64) -> Course {
    let mut machine = Machine::new(words);
    machine.call(&[MEMORY]);
    let mut asked = Asked { refused, asked: Vec::new() };
    let (mut due, mut limits) = (None, Vec::new());
    loop {
        let exit = {
            let Machine { image, memory, stack, context, reservations } = &mut machine;
            let mut space = AddressSpace::new()
                .with(Region::stack("stack", STACK, stack, GUARD))
                .with(Region::memory("memory", MEMORY, memory).ordered());
            if let Some(extra) = due.take() {
                context.perform(image, &mut space, reservations).unwrap();
                context.stall(extra);
            }
            if turns {
                space.take_turns(&mut asked, SLICE);
            }
            context.run(image, &mut space, reservations, context.cycle() + SLICE)
        };
        let context = &machine.context;
        match exit {
            Exit::Order(point) => {
                asked.asked.push((context.cycle(), context.pc(), point));
                due = Some(Asked::extra(context.cycle(), point));
            }
            Exit::Limit => limits.push(context.cycle()),
            Exit::Return(_) => return (asked.asked, limits, machine),
            exit => panic!("{exit:?}"),
        }
    }
}

/// Loads, stores and arithmetic in a loop. Some instructions use loaded values at once.
fn code(ops: &[(u8, u32)]) -> Vec<u32> {
    let body: Vec<u32> = ops
        .iter()
        .map(|&(kind, n)| {
            let offset = 4 * (n % 16) as i32;
            match kind {
                0 => lw(T0, offset, A0),
                1 => sw(T1, offset, A0),
                2 => lbu(T1, offset + 1, A0),
                3 => sh(T0, offset + 2, A0),
                4 => add(T1, T1, T0),
                5 => mul(T0, T1, T0),
                6 => lw(T2, 0, SP),
                _ => sw(T1, 0, SP),
            }
        })
        .collect();
    let back = -4 * (body.len() as i32 + 1);
    [&[addi(SP, SP, -16), addi(A1, ZERO, 5)], &body[..], &[addi(A1, A1, -1), bne(A1, ZERO, back), ret()]]
        .concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200), ..ProptestConfig::default() })]

    #[test]
    fn a_turn_inside_a_slice_is_as_one_behind_it(
        ops in prop::collection::vec((0..8u8, any::<u32>()), 1..40),
        refused in prop_oneof![Just(0), any::<u64>()],
    ) {
        let words = code(&ops);
        let (asked, limits, machine) = course(&words, true, refused);
        let (order, slices, reference) = course(&words, false, 0);
        prop_assert_eq!(asked, order);
        prop_assert_eq!(limits, slices);
        prop_assert_eq!(&machine.context, &reference.context);
        prop_assert_eq!(machine.memory, reference.memory);
        prop_assert_eq!(machine.stack, reference.stack);
    }
}

#[test]
fn nobody_is_asked_for_words_that_are_ordered_by_themselves() {
    let words = [lw(T0, 8, A0), sw(T0, 12, A0), ret()];
    let mut machine = Machine::new(&words);
    machine.call(&[MEMORY]);
    let Machine { image, memory, stack, context, reservations } = &mut machine;
    let mut asked = Asked { refused: 0, asked: Vec::new() };
    let ordered: OrderedWords = [MEMORY + 8].into_iter().collect();
    let mut space = AddressSpace::new()
        .with(Region::stack("stack", STACK, stack, GUARD))
        .with(Region::memory("memory", MEMORY, memory))
        .with_ordered_words(&ordered);
    space.take_turns(&mut asked, SLICE);
    let exit = context.run(image, &mut space, reservations, u64::MAX);
    assert_eq!(exit, Exit::Order(OrderPoint::Memory { address: MEMORY + 8, size: 4, write: false }));
    drop(space);
    assert_eq!(asked.asked, []);
}

#[test]
fn nobody_is_asked_where_instructions_overlap_or_come_through_a_cache() {
    let overlap = Overlap { width: 2, window: 8, alus: 2, loads: 1, stores: 1, mispredict: 4 };
    for core in [Core { overlap: Some(overlap), ..Core::default() }, Core::default()] {
        let mut machine = Machine::on(&core, &[lw(T0, 8, A0), ret()]);
        machine.call(&[MEMORY]);
        let Machine { image, memory, stack, context, reservations } = &mut machine;
        let mut asked = Asked { refused: 0, asked: Vec::new() };
        let mut cache = Cache::new(CacheShape { bytes: 64, ways: 1, line: 16 });
        cache.fill(CODE, 0);
        let mut space = AddressSpace::new()
            .with(Region::stack("stack", STACK, stack, GUARD))
            .with(Region::memory("memory", MEMORY, memory).ordered());
        if core.overlap.is_none() {
            space.fetch_through(&mut cache, 0);
        }
        space.take_turns(&mut asked, SLICE);
        let exit = context.run(image, &mut space, reservations, u64::MAX);
        assert_eq!(exit, Exit::Order(OrderPoint::Memory { address: MEMORY + 8, size: 4, write: false }));
        drop(space);
        assert_eq!(asked.asked, []);
    }
}
