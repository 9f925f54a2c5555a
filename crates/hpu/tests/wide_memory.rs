//! Memory, traps and programs of RV64: accesses of 8 bytes, addresses of 64 bits.

use crate::common::*;
use nicety_hpu::asm::*;
use nicety_hpu::{
    Access, Core, CycleCosts, DeviceAccess, Exit, Illegal, Image, Misaligned, OrderPoint, Overlap, Region,
    TrapKind, bare,
};

const MIN: u64 = 1 << 63;
const ONES: u64 = u64::MAX;
const MIN_WORD: u64 = 0xffff_ffff_8000_0000;

type Two = fn(u32, u32, u32) -> u32;

fn machine_64(words: &[u32]) -> Machine {
    Machine::on(&everything_64(), words)
}

/// Returns the machine after a call with these arguments.
fn finished(words: &[u32], args: &[u64]) -> Machine {
    let mut machine = machine_64(&[words, &[ret()]].concat());
    machine.memory[..8].copy_from_slice(&0xfedc_ba98_8765_4321u64.to_le_bytes());
    machine.call(&[MEMORY]);
    for (register, &arg) in (A1 as usize..).zip(args) {
        machine.context.set_reg(register, arg);
    }
    let exit = machine.finish();
    assert!(matches!(exit, Exit::Return(_)), "{exit:?}");
    machine
}

fn double(machine: &Machine, offset: usize) -> u64 {
    u64::from_le_bytes(machine.memory[offset..offset + 8].try_into().unwrap())
}

#[test]
fn loads_and_stores() {
    for (word, expected) in [
        (ld(A0, 0, A0), 0xfedc_ba98_8765_4321),
        (lw(A0, 0, A0), 0xffff_ffff_8765_4321),
        (lwu(A0, 0, A0), 0x8765_4321),
        (lwu(A0, 4, A0), 0xfedc_ba98),
        (lh(A0, 2, A0), 0xffff_ffff_ffff_8765),
        (lhu(A0, 2, A0), 0x8765),
        (lb(A0, 3, A0), 0xffff_ffff_ffff_ff87),
        (lbu(A0, 3, A0), 0x87),
    ] {
        assert_eq!(finished(&[word], &[]).context.reg(A0 as usize), expected, "{word:#010x}");
        // A second access through the same register takes the short way.
        let again = finished(&[word & !0xf80 | T0 << 7, word], &[]);
        assert_eq!(again.context.reg(A0 as usize), expected, "{word:#010x}");
    }
    let value = 0x0123_4567_89ab_cdef;
    for (word, offset, expected) in [
        (sd(A1, 8, A0), 8, value),
        (sw(A1, 8, A0), 8, 0x89ab_cdef),
        (sh(A1, 8, A0), 8, 0xcdef),
        (sb(A1, 8, A0), 8, 0xef),
    ] {
        assert_eq!(double(&finished(&[word], &[value]), offset), expected, "{word:#010x}");
        assert_eq!(double(&finished(&[word, word], &[value]), offset), expected, "{word:#010x}");
    }
    let machine = finished(&[sd(A1, 8, A0), ld(A2, 8, A0)], &[value]);
    assert_eq!((machine.context.reg(A2 as usize), machine.context.accesses()), (value, 2));
}

#[test]
fn atomics_of_both_sizes() {
    let old = 0xfedc_ba98_8765_4321u64;
    let old_word = 0xffff_ffff_8765_4321u64;
    for (instruction, operand, left) in [
        (amoswap_d as Two, 5, 5),
        (amoadd_d, 1 << 63, 0x7edc_ba98_8765_4321),
        (amoxor_d, ONES, !old),
        (amoand_d, MIN, MIN),
        (amoor_d, 0xf, old | 0xf),
        (amomin_d, 0, old),
        (amomax_d, 0, 0),
        (amominu_d, 0, 0),
        (amomaxu_d, 0, old),
    ] {
        let machine = finished(&[instruction(A2, A1, A0)], &[operand]);
        assert_eq!((machine.context.reg(A2 as usize), double(&machine, 0)), (old, left));
    }
    let upper = old & 0xffff_ffff_0000_0000;
    for (instruction, operand, left) in [
        (amoswap_w as Two, 0xdead_0000_0000_0005, 5),
        (amoadd_w, 0x7_8000_0000, 0x0765_4321),
        (amoxor_w, ONES, 0x789a_bcde),
        (amomin_w, 0xdead_0000_7fff_ffff, 0x8765_4321),
        (amomax_w, 0xdead_0000_7fff_ffff, 0x7fff_ffff),
        (amominu_w, 0xdead_0000_7fff_ffff, 0x7fff_ffff),
        (amomaxu_w, 0xdead_0000_7fff_ffff, 0x8765_4321),
    ] {
        let machine = finished(&[instruction(A2, A1, A0)], &[operand]);
        assert_eq!((machine.context.reg(A2 as usize), double(&machine, 0)), (old_word, upper | left));
    }
    let machine = finished(&[lr_d(A2, A0), sc_d(A3, A1, A0), lr_w(A4, A0), sc_d(A5, ZERO, A0)], &[MIN]);
    let reg = |register: u32| machine.context.reg(register as usize);
    assert_eq!((reg(A2), reg(A3), reg(A4), reg(A5), double(&machine, 0)), (old, 0, 0, 1, MIN));
    // A word that an SC of the other size does not take.
    let machine = finished(&[lr_d(A2, A0), sc_w(A3, A1, A0)], &[MIN]);
    assert_eq!((machine.context.reg(A3 as usize), double(&machine, 0)), (1, old));
}

#[test]
fn a_slice_ends_before_an_atomic_with_its_size() {
    let mut machine = machine_64(&[amoadd_d(A0, A1, A0), amoadd_w(A0, A1, A0)]);
    machine.call(&[MEMORY]);
    let point = OrderPoint::Atomic { address: MEMORY, size: 8, write: true };
    assert_eq!(machine.slice(u64::MAX), Exit::Order(point));
    let image = &machine.image;
    assert!(image.adds_at(CODE) && image.adds_at(CODE + 4) && !image.swaps_at(CODE));
}

#[test]
fn counters_have_64_bits_and_no_high_halves() {
    let mut machine =
        machine_64(&[csrrs(A0, 0xc01, ZERO), csrrs(A1, 0xf14, ZERO), csrrs(A2, 0xc02, ZERO), ret()]);
    machine.context.set_time_base(1 << 40);
    machine.call(&[]);
    machine.finish();
    let reg = |register: u32| machine.context.reg(register as usize);
    assert_eq!((reg(A0), reg(A1), reg(A2)), (1 << 40, 7, 2));
    for csr in [0xc80, 0xc82, 0xb80] {
        let mut machine = machine_64(&[csrrs(A0, csr, ZERO)]);
        machine.call(&[]);
        let why = Illegal::NoSuchCsr(csr);
        assert!(
            matches!(machine.trap().kind, TrapKind::IllegalInstruction { why: found, .. } if found == why)
        );
    }
}

#[test]
fn addresses_of_more_than_32_bits_trap_as_a_whole() {
    let far = 0x0012_3456_7890_0010u64;
    let trap = |words: &[u32], pointer| {
        let mut machine = machine_64(words);
        machine.call(&[]);
        machine.context.set_reg(A0 as usize, pointer);
        let trap = machine.trap();
        assert_eq!((trap.pc, trap.address()), (CODE + 4, None));
        trap.kind.to_string()
    };
    for (word, access) in [
        (ld(A1, -16, A0), "load of 8 bytes from"),
        (lbu(A1, -16, A0), "load of 1 byte from"),
        (sw(A1, -16, A0), "store of 4 bytes to"),
        (jalr(RA, A0, -16), "jump to"),
    ] {
        let text = trap(&[nop(), word], far);
        assert!(text.starts_with(&format!("{access} 0x0012345678900000: ")), "{text}");
        assert!(text.ends_with(" addresses have 32 bits"), "{text}");
    }
    for (word, access) in
        [(lr_d(A1, A0), "load of 8"), (amoadd_w(A1, A1, A0), "store of 4"), (sc_d(A1, A1, A0), "store of 8")]
    {
        let text = trap(&[nop(), word], far);
        assert!(text.starts_with(access) && text.contains("0x0012345678900010"), "{text}");
    }
    // An address that only looks like one of the card's.
    assert!(trap(&[nop(), lw(A1, 0, A0)], u64::from(MEMORY) + (1 << 32)).contains("0x000000011c000000"));
    assert!(trap(&[nop(), lw(A1, -4, A0)], 0).contains("0xfffffffffffffffc"));
    // In order and with overlap, traps are alike.
    let overlap = Overlap { width: 2, window: 8, alus: 1, loads: 1, stores: 1, mispredict: 3 };
    let mut machine =
        Machine::on(&Core { overlap: Some(overlap), ..everything_64() }, &[lui(A0, 0x8_0000), ld(A0, 0, A0)]);
    machine.call(&[]);
    assert_eq!(
        machine.trap().to_string(),
        "load of 8 bytes from 0xffffffff80000000: memory addresses have 32 bits, at pc 0x1d000004"
    );
}

#[test]
fn double_words_at_the_edges_of_memory() {
    let trap = |words: &[u32], pointer: u32, core: &Core| {
        let mut machine = Machine::on(core, words);
        machine.call(&[pointer]);
        machine.trap().kind
    };
    let end = MEMORY + MEMORY_SIZE as u32;
    let (core, access) = (everything_64(), Access::Read);
    assert_eq!(
        trap(&[ld(A1, 0, A0)], MEMORY + 4, &core),
        TrapKind::Misaligned { access, address: MEMORY + 4, size: 8 }
    );
    let kind = trap(&[ld(A1, 0, A0)], end - 4, &Core { misaligned: Misaligned::Costs, ..core });
    assert!(matches!(kind, TrapKind::OutOfRegion { address, size: 8, .. } if address == end - 4), "{kind}");
    // Misaligned where it may be.
    let costs = CycleCosts { misaligned_extra: 5, ..CycleCosts::SINGLE_CYCLE };
    let mut machine =
        Machine::on(&Core { misaligned: Misaligned::Costs, costs, ..core }, &[ld(A0, 4, A0), ret()]);
    machine.set_word(4, 1);
    machine.set_word(8, 2);
    machine.call(&[MEMORY]);
    machine.finish();
    assert_eq!((machine.context.reg(A0 as usize), machine.context.cycle()), (0x2_0000_0001, 7));
}

#[test]
fn a_stack_pointer_below_zero_is_below_the_stack() {
    // Without a limit it is a register as any other.
    assert_eq!(eval_64(&[addi(SP, ZERO, -1), j(4), mv(A0, SP)], &[]), ONES);
    let mut machine = machine_64(&[lui(T0, 0x2_0000), sub(SP, SP, T0), ret()]);
    machine.context.limit_stack(STACK);
    machine.call(&[]);
    let text = machine.trap().kind.to_string();
    let pointer = u64::from(STACK_TOP).wrapping_sub(0x2000_0000);
    assert!(
        text.contains(&format!("moves to {pointer:#x}, {} bytes below", 0x2000_0000 - STACK_SIZE)),
        "{text}"
    );
}

#[test]
fn devices_have_registers_of_four_bytes() {
    let device = |word| {
        let mut machine = machine_64(&[word, ret()]);
        machine.call(&[MEMORY]);
        machine.context.set_reg(A1 as usize, 0x1234_5678_9abc_def0);
        let exit = machine.slice_in(u64::MAX, |_| Region::device("registers", MEMORY, 64));
        (exit, machine)
    };
    for (word, access) in [(ld(A0, 8, A0), "load of 8 bytes from"), (sd(A1, 8, A0), "store of 8 bytes to")] {
        let (Exit::Trap(trap), _) = device(word) else { panic!("no trap") };
        let expected = format!("{access} 0x1c000008 in registers, which has registers of 4 bytes");
        assert_eq!((trap.kind.to_string(), trap.address()), (expected, Some(MEMORY + 8)));
    }
    let (exit, _) = device(sw(A1, 8, A0));
    assert_eq!(exit, Exit::Device(DeviceAccess { address: MEMORY + 8, size: 4, write: Some(0x9abc_def0) }));
    for (word, expected) in [(lw(A0, 8, A0), MIN_WORD), (lwu(A0, 8, A0), 0x8000_0000)] {
        let (exit, mut machine) = device(word);
        assert_eq!(exit, Exit::Device(DeviceAccess { address: MEMORY + 8, size: 4, write: None }));
        machine.context.finish_device(0x8000_0000, 0);
        assert_eq!(machine.context.reg(A0 as usize), expected);
    }
}

#[test]
fn ordered_memory_and_words_hold_double_words() {
    let mut machine = machine_64(&[sd(A1, 8, A0), ld(A2, 8, A0), lw(A3, 8, A0), lwu(A4, 8, A0), ret()]);
    machine.call(&[MEMORY]);
    machine.context.set_reg(A1 as usize, 0x8000_0001_9000_0002);
    let mut points = Vec::new();
    let image = machine.image.clone();
    while let Exit::Order(point) =
        machine.slice_in(u64::MAX, |memory| Region::memory("queue", MEMORY, memory).ordered())
    {
        assert_eq!(machine.context.next_store(&image).count(), if points.is_empty() { 2 } else { 0 });
        points.push(point);
        machine.perform().unwrap();
    }
    let point = |size, write| OrderPoint::Memory { address: MEMORY + 8, size, write };
    assert_eq!(points, [point(8, true), point(8, false), point(4, false), point(4, false)]);
    let loaded = [A2, A3, A4].map(|register| machine.context.reg(register as usize));
    assert_eq!(loaded, [0x8000_0001_9000_0002, 0xffff_ffff_9000_0002, 0x9000_0002]);
}

#[test]
fn results_of_commands_are_ints() {
    let mut machine = machine_64(&[ecall(), ret()]);
    machine.call(&[1, 2]);
    assert_eq!((machine.slice(u64::MAX), machine.context.argument_beyond(8)), (Exit::Ecall, None));
    machine.context.set_reg(A1 as usize, MIN_WORD); // a negative number
    assert_eq!(machine.context.argument_beyond(8), None);
    machine.context.set_reg(A1 as usize, 1 << 40);
    assert_eq!(
        (machine.context.argument_beyond(1), machine.context.argument_beyond(2)),
        (None, Some(1 << 40))
    );
    machine.context.finish_ecall(u32::MAX, 0);
    assert_eq!(machine.context.reg(A0 as usize), ONES);
}

#[test]
fn bare_programs_write_and_end() {
    const CODE: u32 = 0x10_0000;
    const DATA: u32 = 0x20_0000;
    let program = |address: &[u32]| {
        let mut words = vec![addi(A0, ZERO, 1), addi(A2, ZERO, 5), addi(A7, ZERO, 64)];
        words.extend(address);
        words.extend([ecall(), addi(A0, A0, -7), addi(A7, ZERO, 93), ecall()]);
        elf_64(CODE, &[code(CODE, &words), data(DATA, b"hello", 8)])
    };
    let run = |file: &[u8]| {
        let mut output = Vec::new();
        let image = Image::load(file, &everything_64()).unwrap();
        let result = bare::run(&image, None, 1000, &mut output).unwrap();
        (result.exit_code, result.trap.map(|trap| trap.kind.to_string()), output)
    };
    assert_eq!(run(&program(&[lui(A1, DATA >> 12)])), (Some(-2), None, b"hello".to_vec()));
    let far = run(&program(&[lui(A1, DATA >> 12), bseti(A1, A1, 40)]));
    let text = "ecall with the argument 0x0000010000200000, and addresses have 32 bits";
    assert_eq!(far, (None, Some(text.to_owned()), vec![]));
}

#[test]
fn programs_above_4_gib_are_refused() {
    let mut file = elf_64(0x1000, &[code(0x1000, &[ret()])]);
    assert!(Image::load(&file, &everything_64()).is_ok());
    file[24 + 4] = 1; // the upper half of the entry
    let error = Image::load(&file, &everything_64()).unwrap_err().to_string();
    assert_eq!(
        error,
        "the program cannot be loaded: its entry at 0x100001000 is beyond the addresses of a card; link it below 4 GiB"
    );
    file[64 + 16 + 4] = 2; // that of the segment's address
    let error = Image::load(&file, &everything_64()).unwrap_err().to_string();
    assert!(error.contains("its segment at 0x200001000 is beyond the addresses of a card"), "{error}");
}
