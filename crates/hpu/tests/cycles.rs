//! The cycles of instructions, and their independence of the lengths of slices.

use crate::common::*;
use nicety_hpu::asm::*;
use nicety_hpu::{
    AddressSpace, Context, Core, CycleCosts, Exit, Image, Misaligned, OrderPoint, Region, Reservations,
    TrapKind,
};

/// PsPIN, as measured on its RTL: ALU, store and L1 load 1, load-use +1, jalr 2, taken branch 3.
const PSPIN: CycleCosts =
    CycleCosts { load_use: 1, jump_register: 2, branch_taken: 3, ..CycleCosts::SINGLE_CYCLE };

/// Every class has a different cost, so that a mix-up shows.
const DISTINCT: CycleCosts = CycleCosts {
    alu: 1,
    mul: 100,
    mul_high: 200,
    div: 300,
    div_word: 350,
    load: 400,
    store: 500,
    load_use: 10,
    branch_not_taken: 600,
    branch_taken: 700,
    jump: 800,
    jump_register: 900,
    csr: 1000,
    atomic: 1100,
    fence: 1200,
    ecall: 1300,
    float_add: 1400,
    float_mul: 1500,
    float_fused: 1600,
    float_div: 1700,
    float_sqrt: 1800,
    float_convert: 1900,
    float_compare: 2000,
    float_move: 2100,
    misaligned_extra: 50,
};

fn core(costs: CycleCosts) -> Core {
    Core { costs, ..everything() }
}

/// Returns the cycles of the words, without the return that follows.
fn cycles(words: &[u32]) -> u64 {
    let mut machine = Machine::on(&core(DISTINCT), &[words, &[ret()]].concat());
    machine.call(&[MEMORY]);
    assert!(matches!(machine.finish(), Exit::Return(_)));
    machine.context.cycle() - u64::from(DISTINCT.jump_register)
}

#[test]
fn each_class_costs_what_the_table_says() {
    for (word, expected) in [
        (add(T0, T0, T0), 1),
        (lui(T0, 1), 1),
        (nop(), 1),
        (mul(T0, T0, T0), 100),
        (mul(ZERO, T0, T0), 100), // a result discarded by x0 still takes its time
        (mulhu(T0, T0, T0), 200),
        (rem(T0, T0, T0), 300),
        (lbu(T0, 0, A0), 400),
        (sh(T0, 0, A0), 500),
        (bne(ZERO, ZERO, 8), 600),
        (beq(ZERO, ZERO, 4), 700),
        (j(4), 800),
        (csrrs(T0, 0xc00, ZERO), 1000),
        (lr_w(T0, A0), 1100),
        (amoadd_w(T0, T0, A0), 1100),
        (fence(), 1200),
    ] {
        assert_eq!(cycles(&[word]), expected, "{word:#010x}");
    }
    assert_eq!(cycles(&[auipc(T0, 0), jalr(ZERO, T0, 8)]), 901);
}

#[test]
fn each_class_of_the_extensions_costs_what_the_table_says() {
    for (word, expected) in [
        (sh3add(T0, T0, T0), 1),
        (clz(T0, T0), 1),
        (cpop(ZERO, T0), 1),
        (bseti(T0, T0, 3), 1),
        (flw(FT0, 0, A0), 400),
        (fsw(FT0, 0, A0), 500),
        (csrrwi(ZERO, FCSR, 0), 1000),
        (fadd_s(FT0, FT0, FT0), 1400),
        (fsub_s(FT0, FT0, FT0), 1400),
        (fmul_s(FT0, FT0, FT0), 1500),
        (fmadd_s(FT0, FT0, FT0, FT0), 1600),
        (fmsub_s(FT0, FT0, FT0, FT0), 1600),
        (fnmsub_s(FT0, FT0, FT0, FT0), 1600),
        (fnmadd_s(FT0, FT0, FT0, FT0), 1600),
        (fdiv_s(FT0, FT0, FT0), 1700),
        (fsqrt_s(FT0, FT0), 1800),
        (fcvt_w_s(T0, FT0), 1900),
        (fcvt_wu_s(ZERO, FT0), 1900),
        (fcvt_s_w(FT0, T0), 1900),
        (fcvt_s_wu(FT0, T0), 1900),
        (feq_s(T0, FT0, FT0), 2000),
        (flt_s(T0, FT0, FT0), 2000),
        (fle_s(T0, FT0, FT0), 2000),
        (fmin_s(FT0, FT0, FT0), 2000),
        (fmax_s(FT0, FT0, FT0), 2000),
        (fclass_s(T0, FT0), 2000),
        (fmv_x_w(T0, FT0), 2100),
        (fmv_w_x(FT0, T0), 2100),
        (fsgnj_s(FT0, FT0, FT0), 2100),
        (fsgnjn_s(FT0, FT0, FT0), 2100),
        (fsgnjx_s(FT0, FT0, FT0), 2100),
    ] {
        assert_eq!(cycles(&[word]), expected, "{word:#010x}");
    }
    // An instruction waits for a loaded value: in each operand, and in the register of its own kind only.
    assert_eq!(cycles(&[flw(FT0, 0, A0), fadd_s(FT1, FT0, FT2)]), 1810);
    assert_eq!(cycles(&[flw(FT0, 0, A0), fadd_s(FT1, FT2, FT0)]), 1810);
    assert_eq!(cycles(&[flw(FT0, 0, A0), fmadd_s(FT1, FT2, FT3, FT0)]), 2010);
    assert_eq!(cycles(&[flw(FT0, 0, A0), fsw(FT0, 4, A0)]), 910);
    assert_eq!(cycles(&[flw(FT5, 0, A0), mv(T1, T0)]), 401);
    assert_eq!(cycles(&[lw(T0, 0, A0), fcvt_s_w(FT0, T0)]), 2310);
    assert_eq!(cycles(&[lw(T0, 0, A0), fadd_s(FT0, FT5, FT5)]), 1800);
    assert_eq!(cycles(&[lw(T0, 0, A0), csrrw(ZERO, FCSR, T0)]), 1410);
    assert_eq!(cycles(&[lw(T0, 0, A0), csrrwi(ZERO, FCSR, T0)]), 1400); // a number, not a register
    let mut long = vec![nop(); 31];
    long.extend([flw(FT0, 0, A0), fmv_x_w(T0, FT0)]); // across the border of two blocks
    assert_eq!(cycles(&long), 31 + 400 + 10 + 2100);
}

#[test]
fn using_a_load_at_once_costs_a_penalty() {
    assert_eq!(cycles(&[lw(T0, 0, A0), add(T1, T0, T0)]), 411);
    assert_eq!(cycles(&[lw(T0, 0, A0), add(T1, A0, T0)]), 411);
    assert_eq!(cycles(&[lw(T0, 0, A0), nop(), add(T1, T0, T0)]), 402);
    assert_eq!(cycles(&[lw(T0, 0, A0), add(T0, A0, A0)]), 401);
    assert_eq!(cycles(&[lw(T0, 0, A0), sw(T0, 4, A0)]), 910);
    assert_eq!(cycles(&[lw(T0, 0, A0), lw(T0, 0, A0)]), 800);
    assert_eq!(cycles(&[lw(T0, 0, A0), beq(T0, A0, 8)]), 1010);
    assert_eq!(cycles(&[lw(ZERO, 0, A0), add(T0, ZERO, ZERO)]), 401);
    // A result of an atomic comes from memory too, and an atomic waits for a loaded value.
    assert_eq!(cycles(&[amoadd_w(T0, T0, A0), mv(T0, T0)]), 1111);
    assert_eq!(cycles(&[lw(T0, 0, A0), amoadd_w(T1, T0, A0)]), 1510);
    // Across the border of two blocks, here after a block of the maximum length.
    let mut long = vec![nop(); 31];
    long.extend([lw(T0, 0, A0), mv(T1, T0)]);
    assert_eq!(cycles(&long), 31 + 400 + 11);
}

/// As measured on PsPIN: 6 cycles and 4 instructions per word.
#[test]
fn the_sum_of_words_takes_six_cycles_a_word() {
    let words = [
        mv(T0, ZERO),
        lw(T1, 0, A0), // 1
        addi(A0, A0, 4),
        add(T0, T0, T1),
        bne(A0, A1, -12),
        mv(A0, T0),
        ret(),
    ];
    let run = |count: u32| {
        let mut machine = Machine::on(&core(PSPIN), &words);
        for i in 0..count {
            machine.set_word(4 * i as usize, i + 1);
        }
        machine.call(&[MEMORY, MEMORY + 4 * count]);
        assert_eq!(machine.finish(), Exit::Return(count * (count + 1) / 2));
        (machine.context.cycle(), machine.context.instret())
    };
    // Around the loop: two moves, a return of 2, and a last branch that is not taken and so 2 cheaper.
    for count in [1, 16, 128, 256] {
        assert_eq!(run(count), (6 * u64::from(count) + 2, 4 * u64::from(count) + 3));
    }
}

#[test]
fn regions_have_latencies_of_their_own() {
    // PsPIN's L2: load 21, store 22.
    let words = [
        lw(T0, 0, A0),
        nop(),
        sw(T0, 4, A0),
        lw(T0, -4, SP),
        lr_w(T0, A0),
        sc_w(T0, T0, A0),
        amoadd_w(T0, T0, A0),
        ret(),
    ];
    let mut machine = Machine::on(&core(PSPIN), &words);
    machine.call(&[MEMORY]);
    let Machine { image, memory, stack, context, reservations } = &mut machine;
    let mut at = Vec::new();
    loop {
        let mut space = AddressSpace::new();
        space.push(Region::memory("L2", MEMORY, memory).latency(20, 21));
        space.push(Region::stack("stack", STACK, stack, GUARD));
        match context.run(image, &mut space, reservations, u64::MAX) {
            Exit::Order(OrderPoint::Atomic { address, .. }) => {
                assert_eq!(address, MEMORY);
                at.push(context.cycle());
                context.perform(image, &mut space, reservations).unwrap();
            }
            exit => break assert!(matches!(exit, Exit::Return(_)), "{exit:?}"),
        }
    }
    // 21 + 1 + 22 + 1, then LR 21, SC 22 and AMO 21. The last two use the result of the previous one.
    assert_eq!(at, [45, 45 + 21 + 1, 67 + 22 + 1]);
    assert_eq!(context.cycle(), 90 + 21 + 2);
}

#[test]
fn misaligned_accesses_cost_more_where_they_are_allowed() {
    let words = [lw(T0, 1, A0), sw(T0, 6, A0), lhu(A0, 7, A0), ret()];
    let mut machine = Machine::on(&Core { misaligned: Misaligned::Costs, ..core(DISTINCT) }, &words);
    machine.memory[..5].copy_from_slice(&[0, 1, 2, 3, 4]);
    machine.call(&[MEMORY]);
    assert_eq!(machine.finish(), Exit::Return(0x0302));
    assert_eq!(machine.context.cycle(), 450 + 10 + 550 + 450 + 900);
}

#[test]
fn the_cycle_counter_reads_its_own_start() {
    let words =
        [lw(T0, 0, A0), csrrs(T1, 0xc00, ZERO), csrrs(T2, 0xc02, ZERO), sub(A0, T2, T1), mv(A0, T1), ret()];
    let mut machine = Machine::on(&core(DISTINCT), &words);
    machine.call(&[MEMORY]);
    assert_eq!(machine.finish(), Exit::Return(400));
    assert_eq!(machine.context.reg(T2 as usize), 2);
}

#[test]
fn a_jump_costs_a_cycle_even_in_a_table_of_zeros() {
    let zero = CycleCosts { alu: 0, jump: 0, branch_taken: 0, jump_register: 0, ..CycleCosts::SINGLE_CYCLE };
    for endless in [vec![j(0)], vec![beq(ZERO, ZERO, 0)], vec![auipc(T0, 0), jalr(ZERO, T0, 4)]] {
        let mut machine = Machine::on(&core(zero), &endless);
        machine.context.call(&machine.image, CODE, STACK_TOP, &[], 1000);
        let trap = machine.trap();
        assert_eq!(trap.kind, TrapKind::CycleLimit { limit: 1000 });
        assert_eq!(machine.context.instret(), 1000 + (endless.len() as u64 - 1));
    }
}

#[test]
fn limits_are_exact_to_the_instruction() {
    let words = [addi(A0, A0, 1), addi(A0, A0, 1), lw(T0, 0, A1), addi(A0, A0, 1), mv(T0, T0), ret()];
    let starts = [0, 1, 2, 402, 403, 404]; // start of each, and end of the one after
    for until in 0..410 {
        let mut machine = Machine::on(&core(DISTINCT), &words);
        machine.call(&[0, MEMORY]);
        let exit = machine.slice(until);
        let begun = starts.iter().filter(|&&start| start < until).count() as u64;
        assert_eq!(machine.context.instret(), begun, "until {until}");
        assert_eq!(exit == Exit::Limit, begun < 6, "until {until}");
        // The limit of the call does the same, and traps.
        let mut machine = Machine::on(&core(DISTINCT), &words);
        machine.context.call(&machine.image, CODE, STACK_TOP, &[0, MEMORY], until);
        let exit = machine.slice(u64::MAX);
        assert_eq!(machine.context.instret(), begun);
        assert_eq!(matches!(exit, Exit::Trap(_)), begun < 6, "until {until}");
    }
}

#[test]
fn latencies_count_towards_the_limit() {
    let words = [lw(T0, 0, A0), lw(T1, 4, A0), lw(T2, 8, A0), ret()];
    for until in 0..80 {
        let mut machine = Machine::on(&core(PSPIN), &words);
        machine.call(&[MEMORY]);
        let mut begun = 0;
        let exit = machine.slice_in(until, |m| Region::memory("L2", MEMORY, m).latency(20, 21));
        for start in [0, 21, 42, 63] {
            begun += u64::from(start < until);
        }
        assert_eq!(exit == Exit::Limit, begun < 4, "until {until}");
        assert_eq!(machine.context.instret(), begun, "until {until}");
    }
}

#[test]
fn a_limit_between_two_blocks_keeps_the_load_use_penalty() {
    // A block of the maximum length ends after the load.
    let mut words = vec![nop(); 31];
    words.extend([lw(T0, 0, A0), mv(T1, T0), ret()]);
    for until in 1..500 {
        let mut machine = Machine::on(&core(DISTINCT), &words);
        machine.call(&[MEMORY]);
        machine.slice(until);
        assert!(matches!(machine.finish(), Exit::Return(_)));
        assert_eq!(machine.context.cycle(), 31 + 400 + 11 + 900, "until {until}");
    }
}

#[test]
fn a_load_from_a_device_or_a_queue_is_waited_for_too() {
    let words = [lw(T0, 0, A0), mv(T1, T0), ret()];
    let mut machine = Machine::on(&core(DISTINCT), &words);
    machine.call(&[MEMORY]);
    assert!(matches!(machine.slice_in(u64::MAX, |_| Region::device("device", MEMORY, 8)), Exit::Device(_)));
    machine.context.finish_device(5, 7);
    assert!(matches!(machine.finish(), Exit::Return(_)));
    assert_eq!((machine.context.cycle(), machine.context.reg(T1 as usize)), (400 + 7 + 11 + 900, 5));

    // A context that slept until the value arrived does not wait for it again.
    let mut machine = Machine::on(&core(DISTINCT), &words);
    machine.call(&[MEMORY]);
    assert!(matches!(machine.slice_in(u64::MAX, |_| Region::device("device", MEMORY, 8)), Exit::Device(_)));
    machine.context.finish_device(5, 7);
    machine.context.settle();
    assert!(matches!(machine.finish(), Exit::Return(_)));
    assert_eq!(machine.context.cycle(), 400 + 7 + 1 + 900);

    let mut machine = Machine::on(&core(DISTINCT), &words);
    machine.call(&[MEMORY]);
    assert!(matches!(
        machine.slice_in(u64::MAX, |m| Region::memory("queue", MEMORY, m).ordered()),
        Exit::Order(_)
    ));
    machine.perform().unwrap();
    assert!(matches!(machine.finish(), Exit::Return(_)));
    assert_eq!(machine.context.cycle(), 400 + 11 + 900);
}

#[test]
fn a_call_does_not_wait_for_a_load_of_another() {
    let mut machine = Machine::on(&core(DISTINCT), &[mv(T1, T0), lw(T0, 0, A0), ret()]);
    machine.call(&[MEMORY]);
    assert!(matches!(machine.slice_in(u64::MAX, |_| Region::device("device", MEMORY, 8)), Exit::Device(_)));
    machine.context.finish_device(5, 0);
    let before = machine.context.cycle();
    machine.call(&[MEMORY]);
    assert!(matches!(machine.finish(), Exit::Return(_)));
    assert_eq!(machine.context.cycle() - before, 1 + 400 + 900);
}

#[test]
fn a_loop_polls_the_words_that_it_loads_through_registers_it_keeps() {
    let polled = |words: &[u32]| {
        let image = Image::from_words(CODE, words, &Core::default());
        let mut context = Context::new(0);
        let mut stack = [0; STACK_SIZE];
        context.call(&image, CODE, STACK_TOP, &[STACK + 64, 1, STACK + 128], u64::MAX);
        (50..60)
            .map(|until| {
                let mut space = AddressSpace::new().with(Region::stack("stack", STACK, &mut stack, GUARD));
                let exit = context.run(&image, &mut space, &mut Reservations::new(), until);
                assert_eq!(exit, Exit::Limit);
                context.polled(&image)
            })
            .collect::<Vec<_>>()
    };
    // The slice may end anywhere in the loop.
    let one = polled(&[lw(T0, 8, A0), bne(T0, A1, -4), ret()]);
    assert_eq!(one, vec![vec![STACK + 72]; 10]);
    let two =
        polled(&[lhu(T0, 6, A0), beq(T0, A1, 16), lw(T1, 4, A2), addi(T2, T2, 1), jal(ZERO, -16), ret()]);
    assert_eq!(two, vec![vec![STACK + 68, STACK + 132]; 10]);
    // A loop over memory, one without loads, and no loop.
    let over = polled(&[lw(T0, 0, A0), andi(A0, A0, -64), bne(T0, A1, -8), ret()]);
    assert_eq!(over, vec![vec![]; 10]);
    let counting = polled(&[addi(T0, T0, 1), bne(ZERO, A1, -4), ret()]);
    assert_eq!(counting, vec![vec![]; 10]);
    let straight = polled(&[vec![addi(T0, T0, 1); 200], vec![ret()]].concat());
    assert_eq!(straight, vec![vec![]; 10]);
}
