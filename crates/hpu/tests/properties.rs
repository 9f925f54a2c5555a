//! Properties of any code: nothing panics, and slices have no visible effect.

use crate::common::*;
use nicety_hpu::asm::*;
use nicety_hpu::profile::{Cause, Profile};
use nicety_hpu::{
    AddressSpace, Context, Core, CycleCosts, Exit, Image, Isa, Misaligned, Overlap, Region, Reservations,
    Totals, Trap,
};
use proptest::prelude::*;

const COSTS: CycleCosts = CycleCosts {
    mul: 2,
    div: 17,
    load: 2,
    load_use: 1,
    branch_taken: 3,
    jump: 2,
    jump_register: 2,
    atomic: 4,
    fence: 3,
    ecall: 5,
    misaligned_extra: 3,
    ..CycleCosts::SINGLE_CYCLE
};
const LIMIT: u64 = 3_000;

/// The end of a run, and its final state.
#[derive(Clone, Debug, PartialEq)]
struct End {
    returned: Option<u32>,
    trap: Option<Trap>,
    context: Context,
    memory: Vec<u8>,
    stack: Vec<u8>,
}

/// Executes a slice.
type Slice = fn(&mut Context, &Image, &mut AddressSpace<'_>, &mut Reservations, u64) -> Exit;

/// Executes a slice in single steps. Each step completes at most one instruction, and one that needs its turn is known
/// before.
fn in_steps(
    context: &mut Context,
    image: &Image,
    space: &mut AddressSpace<'_>,
    reservations: &mut Reservations,
    until: u64,
) -> Exit {
    loop {
        let (before, ordered) = (context.instret(), context.is_ordered_next(image, space));
        let exit = context.step(image, space, reservations, until);
        assert!(context.instret() - before <= 1, "{} instructions in a step", context.instret() - before);
        match exit {
            Exit::Limit if context.cycle() < until => assert_eq!(context.instret() - before, 1),
            exit => {
                let found = matches!(exit, Exit::Order(_));
                assert!(
                    found == ordered || matches!(exit, Exit::Limit | Exit::Trap(_)),
                    "{exit:?}, {ordered}"
                );
                return exit;
            }
        }
        assert!(!ordered, "an instruction did not wait for its turn");
    }
}

/// Executes a slice with a report of each instruction that cannot end it. Each such instruction is reported once, with
/// its place, and all others are steps.
fn with_reports(
    context: &mut Context,
    image: &Image,
    space: &mut AddressSpace<'_>,
    reservations: &mut Reservations,
    until: u64,
) -> Exit {
    loop {
        let exit = context.step(image, space, reservations, until);
        if exit != Exit::Limit || context.cycle() >= until {
            return exit;
        }
        let (before, mut reports) = (context.instret(), Vec::new());
        let mut watch = |context: &mut Context, _: &mut AddressSpace<'_>| {
            assert!(context.cycle() < until, "an instruction behind the slice");
            assert!(image.instruction(context.pc()).is_some(), "no instruction");
            reports.push(context.pc());
        };
        let exit = context.run_watched(image, space, reservations, until, &mut watch);
        assert_eq!(context.instret() - before, reports.len() as u64, "{reports:x?}");
        if exit != Exit::Limit || context.cycle() >= until {
            return exit;
        }
    }
}

/// Runs code with every kind of region around it. `slices` returns the length of each slice.
fn run(code: &[u8], core: &Core, slices: impl FnMut() -> u64) -> End {
    run_in(Context::run, &Image::from_bytes(CODE, code, core), code, slices, None)
}

fn run_by(slice: Slice, code: &[u8], core: &Core, slices: impl FnMut() -> u64) -> End {
    run_in(slice, &Image::from_bytes(CODE, code, core), code, slices, None)
}

/// Runs code in slices that `slice` executes, with a profile of the run if given.
fn run_in(
    slice: Slice,
    image: &Image,
    code: &[u8],
    mut slices: impl FnMut() -> u64,
    mut profile: Option<&mut Profile>,
) -> End {
    let (mut memory, mut far, mut queue) = (vec![0x5a; MEMORY_SIZE], vec![1; 256], vec![2; 256]);
    let mut stack = vec![0; STACK_SIZE];
    let mut context = Context::new(3);
    let args = [MEMORY, MEMORY + 2048, 0x100, 0x200, 0x300, 4, 5, 6];
    context.call(image, CODE, STACK_TOP - 64, &args, LIMIT);
    let mut reservations = Reservations::new();
    let (returned, trap) = loop {
        let mut space = AddressSpace::new()
            .with(Region::stack("stack", STACK, &mut stack, GUARD))
            .with(Region::memory("memory", MEMORY, &mut memory))
            .with(Region::memory("far", 0x100, &mut far).latency(7, 9))
            .with(Region::memory("queue", 0x200, &mut queue).ordered().latency(1, 2))
            .with(Region::device("device", 0x300, 256))
            .with(Region::read_only("code", CODE, code));
        if let Some(profile) = profile.as_deref_mut() {
            space.count_in(profile);
        }
        let until = context.cycle().saturating_add(slices());
        let exit = slice(&mut context, image, &mut space, &mut reservations, until);
        let pc = context.pc();
        match exit {
            Exit::Return(value) => break (Some(value), None),
            Exit::Trap(trap) => break (None, Some(*trap)),
            Exit::Limit => assert!(context.cycle() >= until),
            Exit::Fetch { .. } => unreachable!("there is no cache"),
            Exit::Ecall => {
                context.finish_ecall(context.args()[0].wrapping_mul(3), 11);
                counted(space.profile(), image, pc, context.cycle());
            }
            Exit::Device(access) => {
                context.finish_device(access.address.wrapping_mul(77), 6);
                counted(space.profile(), image, pc, context.cycle());
            }
            Exit::Order(_) => {
                if let Err(trap) = context.perform(image, &mut space, &mut reservations) {
                    break (None, Some(*trap));
                }
            }
        }
    };
    // The reason it stopped is not part of the handler's state.
    End { returned, trap, context, memory, stack }
}

/// Counts an instruction between slices, and its wait up to `cycle`.
fn counted(profile: Option<&mut Profile>, image: &Image, pc: u32, cycle: u64) {
    if let Some(profile) = profile {
        image.count_in(profile, pc);
        profile.reach(pc, Cause::Transfer, cycle);
    }
}

fn cores() -> impl Strategy<Value = Core> {
    let isas = prop::sample::select(vec![
        "rv32i",
        "rv32im_zicsr",
        "rv32imac_zicsr_zifencei",
        "rv32imafcb_zicsr",
        "rv64imac_zicsr_zifencei",
        "rv64imafcb_zicsr",
    ]);
    let overlaps = prop_oneof![2 => Just(None), 1 => (1..4u16, 1..20u16).prop_map(|(width, window)| {
        Some(Overlap { width, window, alus: 1, loads: 1, stores: 2, mispredict: 7 })
    })];
    (isas, any::<bool>(), overlaps).prop_map(|(isa, misaligned, overlap)| Core {
        overlap,
        isa: isa.parse::<Isa>().unwrap(),
        costs: COSTS,
        misaligned: if misaligned { Misaligned::Costs } else { Misaligned::Trap },
    })
}

/// Registers that code may change: not the pointers to regions.
fn scratch() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![ZERO, T0, T1, T2, S0, A5, A6, A7])
}

fn any_register() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![ZERO, SP, T0, T1, T2, S0, A0, A1, A2, A5, A6, A7])
}

/// Mostly typical instructions of handlers, so that runs make progress before they trap.
fn instruction() -> impl Strategy<Value = u32> {
    type Three = fn(u32, u32, u32) -> u32;
    type Memory = fn(u32, i32, u32) -> u32;
    let arithmetic: Vec<Three> = vec![
        add, sub, sll, slt, sltu, xor, srl, sra, or, and, mul, mulh, mulhsu, mulhu, div, divu, rem, remu,
        addw, sraw, mulw, divw, remuw,
    ];
    let arithmetic = (prop::sample::select(arithmetic), scratch(), any_register(), any_register());
    let immediate = (scratch(), any_register(), -64..64i32);
    let access: Vec<(Memory, i32)> = vec![
        (lw, 4),
        (sw, 4),
        (ld, 8),
        (sd, 8),
        (lwu, 4),
        (lh, 2),
        (lhu, 2),
        (sh, 2),
        (lb, 1),
        (lbu, 1),
        (sb, 1),
    ];
    let bases = prop::sample::select(vec![A0, A0, A1, A1, SP, SP, A2, A3, A4]);
    let access = (prop::sample::select(access), scratch(), bases, 0..16i32, 0..60u32);
    let atomic: Vec<Three> =
        vec![amoadd_w, amoswap_w, amomax_w, sc_w, amoadd_d, amomin_d, sc_d, |rd, _, base| lr_w(rd, base)];
    let atomic =
        (prop::sample::select(atomic), scratch(), scratch(), prop::sample::select(vec![A0, A1, A2, A3, SP]));
    let branches: Vec<Three> = vec![
        |a, b, o| beq(a, b, 4 * o as i32),
        |a, b, o| bne(a, b, 4 * o as i32 - 16),
        |a, b, o| blt(a, b, 4 * o as i32),
        |a, b, o| bgeu(a, b, 4 * o as i32 - 12),
    ];
    let branch = (prop::sample::select(branches), any_register(), any_register(), 1..8u32);
    let floats = (0..4u32, 0..4u32, 0..4u32, any_register());
    type Float = fn(u32, u32, u32, u32) -> u32;
    let float: Vec<Float> = vec![
        |d, a, b, _| fadd_s(d, a, b),
        |d, a, b, _| fdiv_s(d, a, b),
        |d, a, b, _| fmadd_s(d, a, b, a),
        |d, a, b, _| fmin_s(d, a, b),
        |_, a, b, _| feq_s(T1, a, b),
        |d, _, _, x| fcvt_s_w(d, x),
        |_, a, _, _| fcvt_w_s(T0, a),
        |d, _, _, x| fmv_w_x(d, x),
        |d, a, _, _| flw(d, 4 * a as i32, A1),
        |d, a, _, _| fsw(d, 4 * a as i32, A1),
        |d, a, _, _| flw(d, 4 * a as i32, A2),
        |d, a, _, _| fsw(d, 4 * a as i32, A3),
        |d, a, _, _| flw(d, 4 * a as i32, A4),
        |d, _, _, _| csrrwi(T0, FRM, d),
        |_, _, _, x| csrrw(T2, FFLAGS, x),
        |_, _, _, x| sh2add(T0, x, x),
        |_, _, _, x| cpop(T0, x),
    ];
    let float = (prop::sample::select(float), floats);
    let other = prop::sample::select(vec![
        csrrs(T0, 0xc00, ZERO),
        csrrs(T1, 0xc02, ZERO),
        csrrs(T2, 0xc81, ZERO),
        fence(),
        ecall(),
        j(8),
        jal(T0, 12),
        ret(),
        0x8082_8082, // c.jr ra, twice
        0x0505_8d2d, // c.xor a0, a1; c.addi a0, 1
    ]);
    prop_oneof![
        8 => arithmetic.prop_map(|(f, rd, a, b)| f(rd, a, b)),
        4 => immediate.prop_map(|(rd, a, imm)| addi(rd, a, imm)),
        // One access in sixty is misaligned.
        10 => access.prop_map(|((f, size), r, base, o, skew)| f(r, o * size + i32::from(skew == 0), base)),
        2 => atomic.prop_map(|(f, rd, rs, base)| f(rd, rs, base)),
        3 => branch.prop_map(|(f, a, b, o)| f(a, b, o)),
        3 => float.prop_map(|(f, (d, a, b, x))| f(d, a, b, x)),
        1 => other,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases(1500)) })]

    #[test]
    fn random_words_never_panic(code in prop::collection::vec(any::<u8>(), 0..200), core in cores()) {
        run(&code, &core, || u64::MAX);
    }

    #[test]
    fn random_instructions_never_panic(words in prop::collection::vec(
        prop_oneof![3 => instruction(), 1 => any::<u32>()], 1..80), core in cores()
    ) {
        let end = run(&bytes(&words), &core, || u64::MAX);
        prop_assert_eq!(end.context.reg(0), 0);
        if let Some(trap) = end.trap {
            prop_assert!(!trap.to_string().is_empty());
        }
    }

    #[test]
    fn slices_do_not_show(
        words in prop::collection::vec(instruction(), 1..120),
        core in cores(),
        lengths in prop::collection::vec(0..40u64, 1..20),
    ) {
        let code = bytes(&words);
        let whole = run(&code, &core, || u64::MAX);
        let mut next = lengths.iter().cycle();
        // A slice without cycles is allowed, but at least one must make progress.
        let sliced = run(&code, &core, || next.next().unwrap() + u64::from(lengths.iter().all(|&l| l == 0)));
        prop_assert_eq!(&whole, &sliced);
        let stepped = run(&code, &core, || 1);
        prop_assert_eq!(&whole, &stepped);
        let one_by_one = run_by(in_steps, &code, &core, || 50);
        prop_assert_eq!(&whole, &one_by_one);
        let reported = run_by(with_reports, &code, &core, || 50);
        prop_assert_eq!(whole, reported);
    }

    /// A profile changes nothing, and has each instruction and each cycle once.
    #[test]
    fn a_profile_has_each_cycle_once(
        words in prop::collection::vec(instruction(), 1..120),
        core in cores(),
        lengths in prop::collection::vec(1..60u64, 1..20),
    ) {
        let code = bytes(&words);
        let image = Image::from_bytes(CODE, &code, &core);
        let mut next = lengths.iter().cycle();
        let mut slices = || *next.next().unwrap();
        let plain = run(&code, &core, &mut slices);
        let mut totals = Totals::of(&image);
        let mut profile = Profile::default();
        profile.begin(core.overlap.is_some(), totals.paths(), CODE, 0);
        let profiled = run_in(Context::run, &image, &code, &mut slices, Some(&mut profile));
        prop_assert_eq!(&plain, &profiled);
        totals.add(&profile);
        let (mut cycles, mut executions) = (0, 0);
        totals.for_each(&image, |executed| {
            cycles += executed.cycles;
            executions += executed.executions;
        });
        prop_assert_eq!(executions, profiled.context.instret());
        // On a core that overlaps, instructions of a run that traps may still be in flight.
        if core.overlap.is_none() || profiled.returned.is_some() {
            prop_assert_eq!(cycles, profiled.context.cycle());
        }
        prop_assert_eq!(cycles, totals.cycles());
    }
}

#[test]
fn an_atomic_beyond_all_addresses_counts_the_instructions_before_it_once() {
    let core = Core { isa: Isa::RV64IMAC, costs: COSTS, ..Core::default() };
    let code = bytes(&[addi(T0, ZERO, -4), addi(T1, ZERO, 1), amoadd_w(ZERO, T1, T0)]);
    let end = run(&code, &core, || u64::MAX);
    assert!(end.trap.is_some());
    assert_eq!(end.context.instret(), 2);
}
