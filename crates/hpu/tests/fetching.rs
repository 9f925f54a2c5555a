//! Code through an instruction cache.

use crate::common::*;
use nicety_hpu::asm::*;
use nicety_hpu::{
    AddressSpace, Cache, CacheShape, Context, Core, CycleCosts, Exit, Image, Region, Reservations,
};
use proptest::prelude::*;

const FILL: u64 = 9;

/// Runs to the end, and fills in each missing line after `FILL` cycles. Returns cycles and fills.
fn run(image: &Image, context: &mut Context, cache: &mut Cache, program: u32, slice: u64) -> (u64, u64) {
    run_by(false, image, context, cache, program, slice)
}

/// The same, with `steps` in single steps.
fn run_by(
    steps: bool,
    image: &Image,
    context: &mut Context,
    cache: &mut Cache,
    program: u32,
    slice: u64,
) -> (u64, u64) {
    let (begun, before) = (context.cycle(), cache.counters().fills);
    context.call(image, CODE, STACK_TOP, &[], u64::MAX);
    let mut reservations = Reservations::new();
    loop {
        let mut stack = [0; STACK_SIZE];
        let until = context.cycle() + slice;
        let exit = {
            let mut space = AddressSpace::new().with(Region::stack("stack", STACK, &mut stack, GUARD));
            space.fetch_through(cache, program);
            match steps {
                false => context.run(image, &mut space, &mut reservations, until),
                true => loop {
                    let exit = context.step(image, &mut space, &mut reservations, until);
                    if exit != Exit::Limit || context.cycle() >= until {
                        break exit;
                    }
                },
            }
        };
        match exit {
            Exit::Fetch { address, asked } => {
                assert_eq!(cache.find(address.wrapping_add(program)), None, "{address:#x} is there");
                let wait = FILL - u64::from(asked);
                cache.fill(address.wrapping_add(program), context.cycle() + wait);
                context.stall(wait);
            }
            Exit::Limit => {}
            exit => {
                assert!(matches!(exit, Exit::Return(_)), "{exit:?}");
                return (context.cycle() - begun, cache.counters().fills - before);
            }
        }
    }
}

fn cache(bytes: u32, ways: u32) -> Cache {
    Cache::new(CacheShape { bytes, ways, line: 16 })
}

#[test]
fn the_first_run_is_cold_and_the_second_is_not() {
    // Ten instructions of 4 bytes: three lines.
    let words = [vec![addi(A0, A0, 1); 9], vec![ret()]].concat();
    let image = Image::from_words(CODE, &words, &Core::default());
    let (mut context, mut cache) = (Context::new(0), cache(1024, 4));
    assert_eq!(run(&image, &mut context, &mut cache, 0, u64::MAX / 2), (10 + 3 * FILL, 3));
    assert_eq!(run(&image, &mut context, &mut cache, 0, u64::MAX / 2), (10, 0));
    // Another program at the same addresses has separate lines.
    assert_eq!(run(&image, &mut context, &mut cache, 1 << 24, u64::MAX / 2), (10 + 3 * FILL, 3));
    assert_eq!(run(&image, &mut context, &mut cache, 0, u64::MAX / 2), (10, 0));
}

#[test]
fn code_longer_than_the_cache_is_fetched_again() {
    // Three turns of a loop of three lines, in a cache of two; a block may be longer than the cache.
    let mut words = vec![addi(A0, ZERO, 3)];
    words.extend(vec![addi(A1, A1, 1); 9]);
    words.extend([addi(A0, A0, -1), bne(A0, ZERO, -40), ret()]);
    let image = Image::from_words(CODE, &words, &Core::default());
    let (mut context, mut small) = (Context::new(0), cache(32, 2));
    let (cycles, fills) = run(&image, &mut context, &mut small, 0, u64::MAX / 2);
    let instructions = 1 + 3 * 11 + 1;
    // The program's four lines in the first round. In the other two rounds the loop's three lines, each in the place of
    // another one. The last line has the loop's end and the code after it.
    assert_eq!((cycles, fills), (instructions + 10 * FILL, 10));
    let (_, fills) = run(&image, &mut context, &mut cache(64, 2), 0, u64::MAX / 2);
    assert_eq!(fills, 4);
}

/// A core that takes a cycle longer for jumps, and two for taken branches.
fn jumps_take_longer() -> Core {
    let costs = CycleCosts { jump: 2, jump_register: 2, branch_taken: 3, ..CycleCosts::default() };
    Core { costs, ..Core::default() }
}

#[test]
fn a_line_that_a_jump_leads_to_is_asked_for_in_the_jumps_cycles() {
    // A jump over a line, a taken branch over another one, and the code after the last line.
    let words = [
        vec![jal(ZERO, 32)],
        vec![addi(A0, A0, 1); 7],
        vec![beq(ZERO, ZERO, 32)],
        vec![addi(A0, A0, 1); 7],
        vec![addi(A1, A1, 1); 4],
        vec![ret()],
    ]
    .concat();
    let image = Image::from_words(CODE, &words, &jumps_take_longer());
    let (mut context, mut cold) = (Context::new(0), cache(1024, 4));
    // Of four lines, one is requested a cycle before, one two cycles. That of the return is next to the previous one.
    let warm = 2 + 3 + 4 + 2;
    assert_eq!(run(&image, &mut context, &mut cold, 0, u64::MAX / 2), (warm + 4 * FILL - 1 - 2, 4));
    assert_eq!(run(&image, &mut context, &mut cold, 0, u64::MAX / 2), (warm, 0));
    // The same holds if a slice ends after each instruction.
    let (mut context, mut cold) = (Context::new(0), cache(1024, 4));
    assert_eq!(run(&image, &mut context, &mut cold, 0, 1), (warm + 4 * FILL - 1 - 2, 4));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(60)))]

    /// Slices of any length fetch the same lines at the same cycles.
    #[test]
    fn slices_change_nothing(
        turns in 1i32..20,
        body in 1usize..60,
        slice in 1u64..50,
        bytes in 1u32..8,
        slow in any::<bool>(),
    ) {
        let mut words = vec![addi(A0, ZERO, turns)];
        words.extend(vec![addi(A1, A1, 1); body]);
        words.extend([addi(A0, A0, -1), bne(A0, ZERO, -4 * (body as i32 + 1)), ret()]);
        let core = if slow { jumps_take_longer() } else { Core::default() };
        let image = Image::from_words(CODE, &words, &core);
        let (mut context, mut whole) = (Context::new(0), cache(64 * bytes, 4));
        let expected = run(&image, &mut context, &mut whole, 0, u64::MAX / 2);
        let (mut context, mut sliced) = (Context::new(0), cache(64 * bytes, 4));
        let found = run(&image, &mut context, &mut sliced, 0, slice);
        // Steps look up each line once, as the slice does.
        let (mut context, mut stepped) = (Context::new(0), cache(64 * bytes, 4));
        prop_assert_eq!(run_by(true, &image, &mut context, &mut stepped, 0, slice), found);
        prop_assert_eq!(stepped.counters(), sliced.counters());
        // A block that a slice returns to may have lost lines that it had fetched.
        if !slow {
            prop_assert_eq!(found.0 - FILL * found.1, expected.0 - FILL * expected.1);
        }
        if u64::from(64 * bytes) >= 4 * words.len() as u64 + 16 {
            prop_assert_eq!(found, expected);
        }
    }
}
