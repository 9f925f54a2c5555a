//! Every error of a handler, and the intentional ends of a slice.

use crate::common::*;
use nicety_hpu::asm::*;
use nicety_hpu::{
    Access, AddressSpace, Context, Core, DeviceAccess, Exit, Extension, Illegal, Image, Isa, Misaligned,
    Nearest, OrderPoint, Region, Reservations, TrapKind,
};

const ONES: u32 = 0xffff_ffff;

fn trap_of(words: &[u32], args: &[u32]) -> (TrapKind, u32) {
    let mut machine = Machine::new(words);
    machine.call(args);
    let trap = machine.trap();
    assert_eq!(trap.pc, machine.context.pc(), "{trap}");
    (trap.kind, trap.pc - CODE)
}

fn illegal(word: u32, why: Illegal) -> (TrapKind, u32) {
    (TrapKind::IllegalInstruction { word, why }, 4)
}

#[test]
fn illegal_instructions_are_told_apart() {
    let unknown = [
        ONES,
        0x0000_0007,               // flw
        slli(A0, A0, 1) | 1 << 25, // a shift by 33
        add(A0, A0, A0) | 1 << 31, // funct7 of nothing
        lw(A0, 0, A0) | 0x1000,    // ld
        sw(A0, 0, A0) | 0x1000,    // sd
        beq(A0, A0, 4) | 0x2000,   // funct3 of nothing
        jalr(A0, A0, 0) | 0x1000,
        lr_w(A0, A0) | 1 << 20,          // lr with a second operand
        lr_w(A0, A0) & !0x7000 | 0x3000, // lr.d
        amoadd_w(A0, A0, A0) | 1 << 30 | 1 << 29 | 1 << 28,
        ecall() | 1 << 7,
        0x3020_0073, // mret
        0x1050_0073, // wfi
        fence() | 0x7000,
    ];
    for word in unknown {
        assert_eq!(trap_of(&[nop(), word], &[]), illegal(word, Illegal::Unknown), "{word:#010x}");
    }
    assert_eq!(trap_of(&[nop(), 0], &[]), illegal(0, Illegal::Zero));
    assert_eq!(trap_of(&[nop(), 0x0001_2000], &[]), illegal(0x2000, Illegal::Unknown)); // c.fld
    assert_eq!(trap_of(&[nop(), fence_i()], &[]), illegal(fence_i(), Illegal::Needs(Extension::Zifencei)));
    let word = csrrs(A0, 0x300, ZERO);
    assert_eq!(trap_of(&[nop(), word], &[]), illegal(word, Illegal::NoSuchCsr(0x300)));
    for word in [
        csrrw(ZERO, 0xc00, ZERO),
        csrrs(A0, 0xc00, A0),
        csrrc(A0, 0xc00, A0),
        csrrwi(A0, 0xc00, 0),
        csrrsi(A0, 0xc00, 1),
    ] {
        assert_eq!(trap_of(&[nop(), word], &[]), illegal(word, Illegal::ReadOnlyCsr(0xc00)));
    }
}

#[test]
fn extensions_outside_the_isa_are_illegal() {
    let needs = |word: u32| match word & 0x7f {
        0x33 => Extension::M,
        0x2f => Extension::A,
        _ => Extension::Zicsr,
    };
    for word in
        [mul(A0, A0, A0), divu(A0, A0, A0), lr_w(A0, SP), amoadd_w(A0, A0, SP), csrrs(A0, 0xf14, ZERO)]
    {
        let mut machine = Machine::on(&Core { isa: Isa::RV32I, ..Core::default() }, &[nop(), word]);
        machine.call(&[]);
        assert_eq!(machine.trap().kind, illegal(word, Illegal::Needs(needs(word))).0);
    }
    let mut machine = Machine::on(&Core { isa: Isa::RV32I, ..Core::default() }, &[nop(), 0x8082_8082]);
    machine.call(&[]);
    assert_eq!(machine.trap().kind, illegal(0x8082, Illegal::Needs(Extension::C)).0);
}

#[test]
fn zmmul_multiplies_and_does_not_divide() {
    let isa: Isa = "rv32i_zmmul".parse().unwrap();
    let core = Core { isa, ..Core::default() };
    for word in [mul(A0, A0, A1), mulh(A0, A0, A1), mulhsu(A0, A0, A1), mulhu(A0, A0, A1)] {
        let mut machine = Machine::on(&core, &[word, ret()]);
        machine.call(&[6, 7]);
        assert!(matches!(machine.finish(), Exit::Return(0 | 42)));
    }
    for word in [div(A0, A0, A1), divu(A0, A0, A1), rem(A0, A0, A1), remu(A0, A0, A1)] {
        let mut machine = Machine::on(&core, &[nop(), word]);
        machine.call(&[6, 7]);
        assert_eq!(machine.trap().kind, illegal(word, Illegal::Needs(Extension::M)).0);
    }
}

#[test]
fn misaligned_accesses_trap() {
    for (word, access, size) in [
        (lw(A0, 2, A0), Access::Read, 4),
        (lh(A0, 1, A0), Access::Read, 2),
        (lhu(A0, 3, A0), Access::Read, 2),
        (sw(A0, 1, A0), Access::Write, 4),
        (sh(A0, 3, A0), Access::Write, 2),
    ] {
        // The same if the region is known from an earlier access.
        let (kind, pc) = trap_of(&[lw(T0, 0, A0), sw(T0, 0, A0), word], &[MEMORY]);
        let address = MEMORY + if word & 0x7f == 0x23 { word >> 7 & 31 } else { word >> 20 };
        assert_eq!((kind, pc), (TrapKind::Misaligned { access, address, size }, 8));
    }
    for word in [lr_w(A0, A0), sc_w(A0, A0, A0), amoadd_w(A0, A0, A0)] {
        let access = if word == lr_w(A0, A0) { Access::Read } else { Access::Write };
        let (kind, _) = trap_of(&[word], &[MEMORY + 2]);
        assert_eq!(kind, TrapKind::Misaligned { access, address: MEMORY + 2, size: 4 });
    }
}

#[test]
fn jumps_out_of_the_code_trap_at_the_jump() {
    let out = |address| TrapKind::OutOfRegion { access: Access::Execute, address, size: 2, nearest: None };
    let mut machine = Machine::new(&[nop(), jalr(RA, A0, 0)]);
    machine.call(&[0x40]);
    let trap = machine.trap();
    assert_eq!((trap.kind, trap.pc), (out(0x40), CODE + 4));
    // The same if a slice ends directly after the jump.
    let mut machine = Machine::new(&[nop(), jalr(RA, A0, 0)]);
    machine.call(&[0x40]);
    assert_eq!(machine.slice(1), Exit::Limit);
    assert!(matches!(machine.slice(2), Exit::Trap(again) if *again == trap));
    // Running over the end, and starting outside.
    assert_eq!(trap_of(&[nop()], &[]), (out(CODE + 4), 4));
    assert_eq!(trap_of(&[nop(); 32], &[]), (out(CODE + 128), 128));
    let mut machine = Machine::new(&[nop()]);
    machine.context.call(&machine.image, 0x123, STACK_TOP, &[], 100);
    let trap = machine.trap();
    assert_eq!((trap.kind, trap.pc), (out(0x122), 0x122));
    // Half an instruction at the end.
    let mut machine = Machine::of(&Core::default(), &nop().to_le_bytes()[..3]);
    machine.call(&[]);
    assert_eq!(machine.trap().kind, out(CODE));
}

#[test]
fn without_compressed_instructions_targets_are_words() {
    let core = Core { isa: Isa::RV32I, ..Core::default() };
    for (words, args) in
        [([nop(), j(6)], [0]), ([nop(), jalr(ZERO, A0, 0)], [CODE + 2]), ([nop(), beq(A0, A0, 6)], [0])]
    {
        let mut machine = Machine::on(&core, &words);
        machine.call(&args);
        let trap = machine.trap();
        let address = machine.context.pc();
        assert!(address % 4 == 2);
        assert_eq!(trap.kind, TrapKind::Misaligned { access: Access::Execute, address, size: 4 });
        assert_eq!(trap.pc, CODE + 4);
    }
    let mut machine = Machine::on(&core, &[bne(A0, A0, 6), ret()]);
    machine.call(&[5]);
    assert_eq!(machine.finish(), Exit::Return(5));
}

#[test]
fn accesses_outside_all_regions_trap() {
    let nearest = Some(Nearest { region: "memory", base: MEMORY, size: MEMORY_SIZE as u64 });
    let end = MEMORY + MEMORY_SIZE as u32;
    for (word, at, access, size) in [
        (lb(A0, 0, A0), MEMORY - 1, Access::Read, 1),
        (lw(A0, 0, A0), end, Access::Read, 4),
        (sb(A0, 0, A0), end, Access::Write, 1),
        (sw(A0, 0, A0), MEMORY - 4, Access::Write, 4),
        (amoadd_w(A0, A0, A0), end, Access::Write, 4),
    ] {
        let (kind, pc) = trap_of(&[lw(T0, 0, A1), sw(T0, 0, A1), word], &[at, MEMORY]);
        assert_eq!((kind, pc), (TrapKind::OutOfRegion { access, address: at, size, nearest }, 8));
    }
    // A remembered region does not let its neighbours through, at either end.
    for (word, at) in [(lw(T0, 0, A0), end), (lw(T0, 0, A0), MEMORY - 4), (sw(T0, 0, A0), end)] {
        let words = [mv(A2, A0), mv(A0, A1), lw(T0, 0, A0), sw(T0, 0, A0), mv(A0, A2), word];
        let (kind, pc) = trap_of(&words, &[at, MEMORY]);
        assert!(matches!(kind, TrapKind::OutOfRegion { address, .. } if address == at), "{kind}");
        assert_eq!(pc, 20);
    }
}

#[test]
fn the_last_word_of_memory_can_be_used() {
    let (load, store) = (lw(A0, -4, A0), sw(A1, -4, A0));
    let mut machine = Machine::new(&[store, load, ret()]);
    machine.call(&[MEMORY + MEMORY_SIZE as u32, 9]);
    assert_eq!(machine.finish(), Exit::Return(9));
}

#[test]
fn permissions_are_kept() {
    let run = |word, region: fn(&mut [u8]) -> Region<'_>| {
        let mut machine = Machine::new(&[word, word, ret()]);
        machine.call(&[MEMORY + 8]);
        machine.slice_in(u64::MAX, region)
    };
    let forbidden = |exit: Exit, wanted: Access| match exit {
        Exit::Trap(trap) => {
            let expected =
                TrapKind::Forbidden { access: wanted, address: MEMORY + 8, size: 4, region: "header" };
            assert_eq!((trap.kind, trap.pc), (expected, CODE));
        }
        exit => panic!("{exit:?}"),
    };
    let read_only: fn(&mut [u8]) -> Region<'_> = |m| Region::read_only("header", MEMORY, m);
    let also: fn(&mut [u8]) -> Region<'_> = |m| Region::memory("header", MEMORY, m).permissions(true, false);
    let write_only: fn(&mut [u8]) -> Region<'_> =
        |m| Region::memory("header", MEMORY, m).permissions(false, true);
    for region in [read_only, also] {
        assert!(matches!(run(lw(T0, 0, A0), region), Exit::Return(_)));
        forbidden(run(sw(A0, 0, A0), region), Access::Write);
    }
    assert!(matches!(run(sw(A0, 0, A0), write_only), Exit::Return(_)));
    forbidden(run(lw(T0, 0, A0), write_only), Access::Read);
    let made_writable = Region::read_only("header", MEMORY, &[0; 4]).permissions(true, true);
    let mut space = AddressSpace::new().with(made_writable);
    assert!(space.write(MEMORY, 4).is_err());
}

#[test]
fn registers_of_whole_words_have_no_parts() {
    let run = |word| {
        let mut machine = Machine::new(&[word, ret()]);
        machine.call(&[MEMORY + 8]);
        machine.slice_in(u64::MAX, |m| Region::memory("task", MEMORY, m).whole_words())
    };
    assert!(matches!(run(lw(T0, 0, A0)), Exit::Return(_)));
    assert!(matches!(run(sw(T0, 4, A0)), Exit::Return(_)));
    for part in [lhu(T0, 0, A0), lhu(T0, 2, A0), lbu(T0, 3, A0)] {
        assert!(matches!(run(part), Exit::Return(_)));
    }
    for (word, access, address, size) in
        [(sb(T0, 0, A0), Access::Write, MEMORY + 8, 1), (sh(T0, 2, A0), Access::Write, MEMORY + 10, 2)]
    {
        let Exit::Trap(trap) = run(word) else { panic!("a part of a word") };
        assert_eq!(trap.kind, TrapKind::PartOfWord { access, address, size, region: "task" });
    }
}

#[test]
fn registers_may_ignore_stores() {
    let run = |word| {
        let mut machine = Machine::new(&[word, lw(A0, 0, A0), ret()]);
        machine.call(&[MEMORY + 8, 77]);
        machine.memory[8..12].copy_from_slice(&5u32.to_le_bytes());
        machine.slice_in(u64::MAX, |m| Region::read_only("task", MEMORY, m).whole_words().ignores_stores())
    };
    assert!(matches!(run(sw(A1, 0, A0)), Exit::Return(5)));
    let Exit::Trap(trap) = run(sb(A1, 0, A0)) else { panic!("a part of a word") };
    assert!(matches!(trap.kind, TrapKind::PartOfWord { .. }), "{trap}");
    let bytes = [5; 4];
    let mut space =
        AddressSpace::new().with(Region::read_only("task", MEMORY, &bytes).whole_words().ignores_stores());
    let kind = space.write(MEMORY, 4).unwrap_err();
    assert!(matches!(kind, TrapKind::Forbidden { access: Access::Write, .. }), "{kind}");
}

#[test]
fn stack_overflows_are_recognised() {
    let overflow = |words: &[u32], args: &[u32], address: u32| {
        let (kind, _) = trap_of(words, args);
        assert_eq!(kind, TrapKind::StackOverflow { address, bottom: STACK, size: STACK_SIZE as u64 });
    };
    // A frame that goes below, a pointer into the guard, a frame far larger than the stack.
    overflow(&[addi(SP, SP, -1040), sw(A0, 12, SP)], &[], STACK - 4);
    overflow(&[sw(A0, 0, A0)], &[STACK - GUARD], STACK - GUARD);
    overflow(&[lui(T0, 1), sub(SP, SP, T0), mv(T1, SP), sb(A0, 0, T1)], &[], STACK_TOP - 4096);
    // Recursion without end.
    overflow(&[addi(SP, SP, -16), sw(RA, 12, SP), jal(RA, -8)], &[], STACK - 4);
    // Just outside the guard, with a valid stack pointer: some other wild pointer.
    let (kind, _) = trap_of(&[sb(A0, 0, A0)], &[STACK - GUARD - 1]);
    assert!(matches!(kind, TrapKind::OutOfRegion { .. }), "{kind}");
    let (kind, _) = trap_of(&[sw(A0, 0, SP)], &[]);
    assert!(matches!(kind, TrapKind::OutOfRegion { address: STACK_TOP, .. }), "{kind}");
}

#[test]
fn a_stack_overflow_into_other_memory_is_seen_through_the_stack_pointer() {
    let straight = vec![sw(A0, 0, A1), addi(SP, SP, -1040), sw(A0, 12, SP), ret()];
    // Far below first, where no guard is: the region hit there must not be remembered for the next access.
    let far = vec![addi(SP, SP, -2047), sw(A0, 3, SP), addi(SP, SP, 1007), sw(A0, 12, SP), ret()];
    for words in [straight, far] {
        let image = Image::from_words(CODE, &words, &Core::default());
        let (mut below, mut stack) = (vec![0; 4096], vec![0; STACK_SIZE]);
        let mut context = Context::new(0);
        context.call(&image, CODE, STACK_TOP, &[1, STACK - 4], 1000);
        let mut space = AddressSpace::new()
            .with(Region::memory("below", STACK - 4096, &mut below))
            .with(Region::stack("stack", STACK, &mut stack, GUARD));
        match context.run(&image, &mut space, &mut Reservations::new(), u64::MAX) {
            Exit::Trap(trap) => {
                assert_eq!(trap.pc, CODE + 4 * (words.len() as u32 - 2));
                assert!(
                    matches!(trap.kind, TrapKind::StackOverflow { address, .. } if address == STACK - 4),
                    "{trap}"
                );
            }
            exit => panic!("{exit:?}"),
        }
    }
}

#[test]
fn ebreak_traps() {
    assert_eq!(trap_of(&[nop(), ebreak()], &[]), (TrapKind::Breakpoint, 4));
}

#[test]
fn an_ecall_is_the_callers_to_serve() {
    let mut machine = Machine::new(&[addi(A7, ZERO, 3), ecall(), addi(A0, A0, 1), ret()]);
    machine.call(&[10, 20]);
    // A second call changes nothing.
    for _ in 0..2 {
        assert_eq!(machine.slice(u64::MAX), Exit::Ecall);
        assert_eq!(machine.context.args(), [10, 20, 0, 0, 0, 0, 0, 3]);
        assert_eq!(
            (machine.context.cycle(), machine.context.instret(), machine.context.pc()),
            (1, 1, CODE + 4)
        );
    }
    machine.context.finish_ecall(41, 100);
    assert_eq!((machine.context.cycle(), machine.context.instret()), (102, 2));
    assert_eq!(machine.slice(u64::MAX), Exit::Return(42));
}

fn doorbell(_: &mut [u8]) -> Region<'_> {
    Region::device("doorbell", MEMORY, 64)
}

#[test]
fn a_slice_ends_before_a_device_access() {
    let device = |address, size, write| Exit::Device(DeviceAccess { address, size, write });
    let words =
        [sh(A1, 2, A0), lb(A2, 4, A0), mv(A3, A2), lbu(A2, 5, A0), lhu(A4, 6, A0), lw(ZERO, 8, A0), ret()];
    let mut machine = Machine::new(&words);
    machine.call(&[MEMORY, 0x1_fffe]);
    assert_eq!(machine.slice_in(u64::MAX, doorbell), device(MEMORY + 2, 2, Some(0xfffe)));
    machine.context.finish_device(0x55, 10);
    assert_eq!(machine.context.cycle(), 11);
    assert_eq!(machine.slice_in(u64::MAX, doorbell), device(MEMORY + 4, 1, None));
    machine.context.finish_device(0x80, 0);
    assert_eq!(machine.slice_in(u64::MAX, doorbell), device(MEMORY + 5, 1, None));
    machine.context.finish_device(0x1ff, 0);
    assert_eq!(machine.slice_in(u64::MAX, doorbell), device(MEMORY + 6, 2, None));
    machine.context.finish_device(0xffff_8000, 0);
    assert_eq!(machine.slice_in(u64::MAX, doorbell), device(MEMORY + 8, 4, None));
    machine.context.finish_device(1, 0);
    assert_eq!(machine.slice_in(u64::MAX, doorbell), Exit::Return(MEMORY));
    let reg = |r: u32| machine.context.reg(r as usize);
    assert_eq!((reg(A3), reg(A2), reg(A4)), (0xffff_ff80, 0xff, 0x8000));
    assert_eq!((machine.context.cycle(), machine.context.instret()), (17, 7));
}

#[test]
fn devices_have_no_misaligned_and_no_atomic_accesses() {
    let core = Core { misaligned: Misaligned::Costs, ..Core::default() };
    let mut machine = Machine::on(&core, &[lw(A0, 2, A0)]);
    machine.call(&[MEMORY]);
    let exit = machine.slice_in(u64::MAX, doorbell);
    let kind = TrapKind::Misaligned { access: Access::Read, address: MEMORY + 2, size: 4 };
    assert!(matches!(exit, Exit::Trap(trap) if trap.kind == kind));

    let mut machine = Machine::on(&core, &[amoadd_w(A0, A0, A0)]);
    machine.call(&[MEMORY + 4]);
    let mut space = AddressSpace::new().with(Region::device("doorbell", MEMORY, 64));
    let Machine { image, context, reservations, .. } = &mut machine;
    let exit = context.run(image, &mut space, reservations, u64::MAX);
    assert_eq!(exit, Exit::Order(OrderPoint::Atomic { address: MEMORY + 4, size: 4, write: true }));
    let trap = context.perform(image, &mut space, reservations).unwrap_err();
    assert_eq!(trap.kind, TrapKind::AtomicOnDevice { address: MEMORY + 4, region: "doorbell" });
}

#[test]
fn a_memory_behind_a_bus_takes_any_byte_where_the_core_does() {
    fn region(_: &mut [u8]) -> Region<'_> {
        Region::device("memory", MEMORY, 64).at_any_byte()
    }
    let misaligned = [Misaligned::Costs, Misaligned::Trap];
    let exits = misaligned.map(|misaligned| {
        let mut machine = Machine::on(&Core { misaligned, ..Core::default() }, &[lw(A0, 2, A0)]);
        machine.call(&[MEMORY]);
        machine.slice_in(u64::MAX, region)
    });
    let access = DeviceAccess { address: MEMORY + 2, size: 4, write: None };
    assert_eq!(exits[0], Exit::Device(access));
    let kind = TrapKind::Misaligned { access: Access::Read, address: MEMORY + 2, size: 4 };
    assert!(matches!(&exits[1], Exit::Trap(trap) if trap.kind == kind));
}

#[test]
fn a_slice_ends_before_an_access_to_an_ordered_region() {
    let order = |address, size, write| Exit::Order(OrderPoint::Memory { address, size, write });
    let mut machine = Machine::new(&[nop(), sw(A1, 0, A0), lb(T0, 0, A0), lb(A0, 0, A0), ret()]);
    machine.call(&[MEMORY, 0xff]);
    let Machine { image, memory, context, reservations, .. } = &mut machine;
    let mut space = AddressSpace::new().with(Region::memory("queue", MEMORY, memory).ordered().latency(5, 7));
    assert_eq!(context.run(image, &mut space, reservations, u64::MAX), order(MEMORY, 4, true));
    assert_eq!(context.cycle(), 1);
    context.stall(100);
    context.perform(image, &mut space, reservations).unwrap();
    assert_eq!(context.cycle(), 109);
    // Each time anew: an access that was performed does not open the region.
    for _ in 0..2 {
        assert_eq!(context.run(image, &mut space, reservations, u64::MAX), order(MEMORY, 1, false));
        context.perform(image, &mut space, reservations).unwrap();
    }
    assert_eq!(context.run(image, &mut space, reservations, u64::MAX), Exit::Return(ONES));
    assert_eq!((context.cycle(), context.instret()), (109 + 2 * 6 + 1, 5));
    assert_eq!(space.read(MEMORY, 4), Ok(&[0xff, 0, 0, 0][..]));
}

#[test]
fn an_ordered_region_stays_ordered_without_a_latency_too() {
    let mut machine = Machine::new(&[lw(T0, 0, A0), lw(T1, 0, A0), ret()]);
    machine.call(&[MEMORY]);
    let Machine { image, memory, context, reservations, .. } = &mut machine;
    let mut space = AddressSpace::new().with(Region::memory("queue", MEMORY, memory).ordered());
    for _ in 0..2 {
        let exit = context.run(image, &mut space, reservations, u64::MAX);
        assert!(matches!(exit, Exit::Order(OrderPoint::Memory { .. })), "{exit:?}");
        context.perform(image, &mut space, reservations).unwrap();
    }
    assert_eq!(context.run(image, &mut space, reservations, u64::MAX), Exit::Return(MEMORY));
}

#[test]
fn pointers_of_commands_are_checked() {
    let (mut memory, header) = ([1, 2, 3, 4], [9; 4]);
    let mut space = AddressSpace::default()
        .with(Region::memory("memory", 0x100, &mut memory))
        .with(Region::read_only("header", 0x104, &header))
        .with(Region::device("device", 0x200, 16));
    assert_eq!(space.read(0x101, 3), Ok(&[2, 3, 4][..]));
    assert_eq!(space.read(0x102, 0), Ok(&[][..]));
    space.write(0x101, 2).unwrap().copy_from_slice(&[7, 8]);
    assert_eq!(space.read(0x100, 4), Ok(&[1, 7, 8, 4][..]));
    let text = |result: Result<&[u8], TrapKind>| result.unwrap_err().to_string();
    assert_eq!(
        text(space.read(0x102, 4)),
        "load of 4 bytes from 0x102 outside its memory, over the end of memory (4 bytes at 0x100)"
    );
    assert!(text(space.read(0x200, 4)).contains("outside its memory"));
    assert!(text(space.read(ONES, ONES)).contains("outside its memory"));
    assert_eq!(
        space.write(0x104, 1).unwrap_err(),
        TrapKind::Forbidden { access: Access::Write, address: 0x104, size: 1, region: "header" }
    );
    let names: Vec<_> = space.regions().iter().map(|r| (r.name(), r.base(), r.size())).collect();
    assert_eq!(names, [("memory", 0x100, 4), ("header", 0x104, 4), ("device", 0x200, 16)]);
}

#[test]
fn a_trap_knows_its_address() {
    let mut machine = Machine::new(&[sw(A0, 0, A0)]);
    machine.call(&[0x1234]);
    let trap = machine.trap();
    assert_eq!(trap.address(), Some(0x1234));
    assert_eq!(trap.to_string(), "store of 4 bytes to 0x1234 outside its memory, at pc 0x1d000000");
}

#[test]
#[should_panic(expected = "no ecall to finish")]
fn finishing_an_ecall_that_is_none_is_refused() {
    Context::new(0).finish_ecall(0, 0);
}

#[test]
#[should_panic(expected = "no device access to finish")]
fn finishing_a_device_access_that_is_none_is_refused() {
    Context::new(0).finish_device(0, 0);
}

#[test]
#[should_panic(expected = "no instruction waits for its turn")]
fn performing_nothing_is_refused() {
    let _ = Machine::new(&[nop()]).perform();
}

#[test]
#[should_panic(expected = "memory reaches over the end of the address space")]
fn a_region_has_to_fit_the_address_space() {
    Region::memory("memory", 0xffff_fffc, &mut [0; 5]);
}
