//! Real programs: compiled C with line tables, and ELF files that are handmade or damaged.

use crate::common;
use crate::common::{Load, cases, code, data, elf};
use nicety_hpu::asm::bytes as bytes_of;
use nicety_hpu::asm::*;
use nicety_hpu::bare::{self, BareResult};
use nicety_hpu::{
    AddressSpace, Context, Core, Exit, Image, Isa, LoadError, Region, Reservations, Trap, with_segment,
};
use proptest::prelude::*;
use std::sync::Arc;

const PROGRAM: &[u8] = include_bytes!("data/program.elf");
const PROGRAM_64: &[u8] = include_bytes!("data/program-64.elf");
const SOURCE: &str = include_str!("data/program.c");
const LIMIT: u64 = 1_000_000;

/// Byte offsets in an ELF header.
const ENDIAN: usize = 5;
const TYPE: usize = 16;
const MACHINE: usize = 18;
const FLAGS: usize = 36;

fn load(file: &[u8]) -> Result<Arc<Image>, LoadError> {
    Image::load(file, &Core::default())
}

fn run(file: &[u8], entry: Option<&str>) -> (BareResult, String) {
    let mut output = Vec::new();
    let result = bare::run(&load(file).unwrap(), entry, LIMIT, &mut output).unwrap();
    (result, String::from_utf8(output).unwrap())
}

fn trap_of(entry: &str) -> Trap {
    let (result, _) = run(PROGRAM, Some(entry));
    assert_eq!(result.exit_code, None);
    *result.trap.unwrap()
}

/// The line, counted from 1, that has this text.
fn line_of(text: &str) -> Option<u32> {
    Some(SOURCE.lines().position(|line| line.contains(text)).unwrap() as u32 + 1)
}

#[test]
fn a_compiled_program_runs() {
    let (result, output) = run(PROGRAM, None);
    assert_eq!(output, "hello from a bare program\n");
    assert_eq!((result.exit_code, result.trap), (Some(42), None));
    assert_eq!(result.instructions, result.cycles);
    assert!(result.instructions > 10_000);
    // A lone function: its return value is the exit code.
    let (result, output) = run(PROGRAM, Some("header_handler"));
    assert_eq!((result.exit_code, output.as_str()), (Some(0), ""));
}

#[test]
fn a_compiled_program_of_rv64_runs_and_has_lines() {
    let image = Image::load(PROGRAM_64, &common::everything_64()).unwrap();
    let mut output = Vec::new();
    let result = bare::run(&image, None, LIMIT, &mut output).unwrap();
    assert_eq!(output, b"hello from a bare program\n");
    assert_eq!((result.exit_code, result.trap), (Some(42), None));
    let result = bare::run(&image, Some("payload_handler"), LIMIT, &mut std::io::sink()).unwrap();
    let location = result.trap.unwrap().location.unwrap();
    assert_eq!((location.function.as_deref(), location.line), (Some("poke"), line_of("*where = value;")));
    assert_eq!(location.file_name().as_deref(), Some("program.c"));
}

#[test]
fn traps_name_the_line_of_the_source() {
    for (entry, function, line, text) in [
        ("payload_handler", "poke", "*where = value;", "store of 4 bytes to 0x0 outside its memory"),
        (
            "completion_handler",
            "completion_handler",
            "while (*flag == 0)",
            "load of 4 bytes from 0x0 outside",
        ),
        (
            "write_code",
            "write_code",
            "payload_handler = 0;",
            "in the program's code and constants, which is read-only",
        ),
        (
            "unknown_call",
            "system_call",
            "\"ecall\"",
            "ecall with a7 = 1234, which is no known call; a bare program has the calls 64",
        ),
        ("bad_pointer", "system_call", "\"ecall\"", "load of 4 bytes from 0x10 outside its memory"),
    ] {
        let trap = trap_of(entry);
        let location = trap.location.clone().unwrap();
        assert_eq!(location.function.as_deref(), Some(function), "{trap}");
        assert_eq!(location.line, line_of(line), "{trap}");
        assert!(trap.to_string().contains(text), "{trap}");
        assert!(trap.to_string().contains(&format!("in {function} at program.c:")), "{trap}");
    }
}

#[test]
fn a_handler_that_never_ends_is_stopped_where_it_loops() {
    let image = load(PROGRAM).unwrap();
    let (mut flag, mut stack) = ([0; 4], [0; 256]);
    let mut space = AddressSpace::new()
        .with(Region::stack("stack", 0x2_0000, &mut stack, 64))
        .with(Region::memory("memory", 0x3_0000, &mut flag));
    let mut context = Context::new(0);
    context.call(&image, image.symbol("completion_handler").unwrap(), 0x2_0100, &[0x3_0000], 500);
    let exit = context.run(&image, &mut space, &mut Reservations::new(), u64::MAX);
    let Exit::Trap(trap) = exit else { panic!("{exit:?}") };
    let text = trap.to_string();
    assert!(text.starts_with("still running at its limit of 500 cycles (does it loop for ever?)"), "{text}");
    assert!(text.contains("in completion_handler at program.c:"), "{text}");
}

#[test]
fn a_recursion_too_deep_overflows_the_stack() {
    let image = load(PROGRAM).unwrap();
    let run = |depth| {
        let mut stack = [0; 1024];
        let mut space = AddressSpace::new().with(Region::stack("stack", 0x2_0000, &mut stack, 256));
        let mut context = Context::new(0);
        context.call(&image, image.require("header_handler").unwrap(), 0x2_0400, &[depth], LIMIT);
        context.run(&image, &mut space, &mut Reservations::new(), u64::MAX)
    };
    assert_eq!(run(3), Exit::Return(6));
    let Exit::Trap(trap) = run(100) else { panic!() };
    assert!(trap.to_string().starts_with("stack overflow: access to 0x1ff"), "{trap}");
    assert!(trap.to_string().contains("in header_handler at program.c:"), "{trap}");
}

#[test]
fn symbols_are_found_and_missing_ones_named() {
    let image = load(PROGRAM).unwrap();
    assert_eq!(image.symbol("_start"), Some(image.entry()));
    assert!(image.functions().any(|name| name == "payload_handler"));
    assert!(image.is_code(image.require("payload_handler").unwrap()));
    assert!(!image.is_code(image.entry() + 1) && !image.is_code(image.segments()[0].address()));
    assert_eq!(image.symbol("no_such_handler"), None);
    let error = image.require("no_such_handler").unwrap_err().to_string();
    assert_eq!(
        error,
        "no symbol no_such_handler is defined; the functions there are: _start, bad_pointer, completion_handler, \
         header_handler, payload_handler, unknown_call, write_code"
    );
    let stripped = load(&elf(0x100, &[code(0x100, &[ret()])])).unwrap();
    let error = bare::run(&stripped, Some("main"), 10, &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(error, "no symbol main is defined; the file exports no functions at all (was it stripped?)");
    assert_eq!(stripped.locate(0x100), None);
}

#[test]
fn places_are_known_without_line_tables_too() {
    // Renames the line table's section. Function names remain.
    let at = PROGRAM.windows(11).position(|w| w == b".debug_info").unwrap();
    let mut file = PROGRAM.to_vec();
    file[at + 1] = b'X';
    let image = load(&file).unwrap();
    let entry = image.require("payload_handler").unwrap();
    assert_eq!(image.locate(entry + 4).unwrap().to_string(), "in payload_handler");
    assert_eq!(image.locate(0x10), None);
    assert_eq!(image.locate(u32::MAX), None);
}

#[test]
fn files_that_are_no_handlers_say_what_to_do() {
    let file = elf(0x1000, &[code(0x1000, &[ret()])]);
    let patched = |at: usize, value: u8| {
        let mut file = file.clone();
        file[at] = value;
        load(&file).unwrap_err().to_string()
    };
    for (error, text) in [
        (load(b"").unwrap_err().to_string(), "not an ELF file; handlers are compiled and linked"),
        (load(b"int main() {}   ").unwrap_err().to_string(), "not an ELF file"),
        (load(&file[..40]).unwrap_err().to_string(), "a damaged ELF file"),
        (
            patched(MACHINE, 62),
            "an ELF file for x86-64, not a little-endian RISC-V ELF file; compile it for riscv32 or riscv64",
        ),
        (
            load(&common::elf_64(0x1000, &[code(0x1000, &[ret()])])).unwrap_err().to_string(),
            "it was compiled for registers of 64 bits (RV64), which the core (rv32imac_zicsr) lacks; compile it for",
        ),
        (
            Image::load(&file, &Core { isa: Isa::RV64I, ..Core::default() }).unwrap_err().to_string(),
            "it was compiled for registers of 32 bits (RV32), which the core (rv64i) lacks",
        ),
        (patched(ENDIAN, 2), "a big-endian ELF file, not a little-endian"),
        (patched(MACHINE, 40), "an ELF file for ARM, not a little-endian"),
        (patched(MACHINE, 3), "an ELF file for x86, not"),
        (patched(MACHINE, 8), "an ELF file for MIPS, not"),
        (patched(MACHINE, 62), "an ELF file for x86-64, not"),
        (patched(MACHINE, 183), "an ELF file for 64-bit ARM, not"),
        (patched(MACHINE, 99), "an ELF file for machine 99"),
        (
            patched(TYPE, 1),
            "an object file, not an executable linked to fixed addresses; link it with -static",
        ),
        (patched(TYPE, 3), "a shared or position-independent file, not an executable"),
        (patched(TYPE, 4), "a core dump"),
        (patched(TYPE, 9), "an ELF file of an unknown type"),
        (
            patched(FLAGS, 2),
            "it was compiled for a floating-point calling convention (-mabi=ilp32f or lp64f), which the core (rv32imac_zicsr)",
        ),
        (
            patched(FLAGS, 4),
            "it was compiled for a double-precision calling convention (-mabi=ilp32d or lp64d), which",
        ),
        (
            patched(FLAGS, 8),
            "it was compiled for 16 registers (base e), which the core (rv32imac_zicsr) lacks",
        ),
        (
            Image::load(PROGRAM, &Core { isa: Isa::RV32I, ..Core::default() }).unwrap_err().to_string(),
            "it was compiled for compressed instructions, which the core (rv32i) lacks; compile it for that isa",
        ),
    ] {
        assert!(error.contains(text), "{error}");
    }
    // If there are float registers, arguments may be in them.
    let mut file = PROGRAM.to_vec();
    file[FLAGS] |= 2;
    let isa: Isa = "rv32imafc".parse().unwrap();
    assert!(Image::load(&file, &Core { isa, ..Core::default() }).is_ok());
}

#[test]
fn damaged_program_headers_are_named() {
    let error = |loads: &[Load]| load(&elf(0, loads)).unwrap_err().to_string();
    assert_eq!(
        error(&[]),
        "the program cannot be loaded: it has no code; write at least one function that is not static"
    );
    assert_eq!(
        error(&[data(0x1000, &[1], 8)]),
        "the program cannot be loaded: it has no code; write at least one function that is not static"
    );
    assert_eq!(
        error(&[code(0x1000, &[ret()]), data(0x2000, &[1, 2], 1)]),
        "a damaged ELF file: the segment at 0x2000 is larger in the file than in memory"
    );
    assert_eq!(
        error(&[code(0x1000, &[ret()]), data(0xffff_fff0, &[], 17)]),
        "a damaged ELF file: the segment at 0xfffffff0 reaches over the end of the address space"
    );
    assert_eq!(
        error(&[data(0x1003, &[], 1), code(0x1000, &[ret()])]),
        "a damaged ELF file: the segments at 0x1000 and 0x1003 overlap"
    );
    let mut file = elf(0, &[code(0x1000, &[ret()])]);
    file.truncate(file.len() - 1);
    assert_eq!(
        load(&file).unwrap_err().to_string(),
        "a damaged ELF file: the segment at 0x1000 has bytes beyond the end of the file"
    );
}

/// Returns an executable with `count` segments of `size` bytes, which all share the same bytes of the file.
fn shared(count: u16, flags: u32, file_size: u32, size: u32) -> Vec<u8> {
    let mut file = elf(0x1000, &[]);
    file.resize(52, 0);
    file[44..46].copy_from_slice(&count.to_le_bytes());
    let offset = 52 + 32 * u32::from(count);
    for i in 0..u32::from(count) {
        let address = 0x1000 + i * size;
        let words = [1, offset, address, address, file_size, size, flags, 1];
        words.iter().for_each(|word| file.extend(word.to_le_bytes()));
    }
    file.resize(file.len() + file_size as usize, 0x13);
    file
}

#[test]
fn oversized_programs_are_refused_before_allocation() {
    let error = |file: Vec<u8>| load(&file).unwrap_err().to_string();
    // 4000 segments over the same 512 KiB: 2 GB of bytes, and 16 GB of block slots.
    assert_eq!(
        error(shared(4000, 5, 512 << 10, 512 << 10)),
        "the program cannot be loaded: it has 4000 segments; a program may have 64"
    );
    assert_eq!(
        error(shared(33, 5, 512 << 10, 512 << 10)),
        "the program cannot be loaded: it has 17301504 bytes of code; a program may have 16777216"
    );
    // 14 segments of 256 MiB of zeros.
    assert_eq!(
        error(shared(14, 6, 0, 256 << 20)),
        "the program cannot be loaded: its segments take 3758096384 bytes of memory; a program may take 268435456"
    );
    let whole = [code(0x1000, &[ret()]), data(0x2000, &[], (256 << 20) - 4)];
    assert!(load(&elf(0x1000, &whole)).is_ok());
    let more = [code(0x1000, &[ret()]), data(0x2000, &[], (256 << 20) - 3)];
    assert!(error(elf(0x1000, &more)).contains("take 268435457 bytes of memory"));
}

/// Returns an executable with global functions. Their names are suffixes of one name of `length` bytes, each one byte
/// shorter, then again.
fn with_names(symbols: u32, length: usize, distinct: u32) -> Vec<u8> {
    let mut file = elf(0x1000, &[code(0x1000, &[ret()])]);
    let mut table = vec![0; 16];
    for i in 0..symbols {
        [1 + i % distinct, 0x1000, 0].iter().for_each(|word: &u32| table.extend(word.to_le_bytes()));
        table.extend([0x12, 0, 0xf1, 0xff]); // a global function at an absolute address
    }
    let names = [&[0][..], &vec![b'n'; length], &[0]].concat();
    let (names_at, table_at) = (file.len(), file.len() + names.len());
    file.extend(&names);
    file.extend(&table);
    let sections_at = file.len() as u32;
    file.extend([0; 40]);
    for [kind, at, size, link, entry] in [[3, names_at, names.len(), 0, 0], [2, table_at, table.len(), 1, 16]]
        .map(|part| part.map(|n| n as u32))
    {
        [0, kind, 0, 0, at, size, link, 1, 1, entry].iter().for_each(|word| file.extend(word.to_le_bytes()));
    }
    file[32..36].copy_from_slice(&sections_at.to_le_bytes());
    file[46..52].copy_from_slice(&[40, 0, 3, 0, 1, 0]);
    file
}

#[test]
fn names_that_share_their_bytes_are_bounded() {
    let image = load(&with_names(3000, 4096, 100)).unwrap();
    assert_eq!(image.functions().count(), 100, "the same name again is the same symbol");
    // 8 of them are longer than the limit.
    assert_eq!(load(&with_names(3000, 4104, 100)).unwrap().functions().count(), 92);
    // 4096 names that fit into 4096 bytes of the file.
    let error = load(&with_names(4096, 4096, 4096)).unwrap_err().to_string();
    assert_eq!(error, "the program cannot be loaded: the names of its symbols take more than 8388608 bytes");
}

#[test]
fn code_in_a_segment_at_an_odd_address_is_where_it_says() {
    // One byte of padding, then code at an even address.
    let mut bytes = vec![0xff];
    bytes.extend(bytes_of(&[addi(A0, ZERO, 42), ret()]));
    let size = bytes.len() as u32;
    let odd = Load { address: 0x1001, flags: 5, bytes, size };
    assert_eq!(run(&elf(0x1002, &[odd]), None).0.exit_code, Some(42));
    // A segment of one byte at an odd address, the last of all too, has no code.
    for address in [0x3001, 0xffff_ffff] {
        let byte = Load { address, flags: 5, bytes: vec![0x13], size: 1 };
        let image = load(&elf(0x1000, &[code(0x1000, &[ret()]), byte])).unwrap();
        assert!(!image.is_code(address & !1) && !image.is_code(address.wrapping_add(1)));
    }
}

/// Overwrites the following `addi a0, zero, 1` with `addi a0, zero, 2`, and runs the result.
fn patching(between: &[u32]) -> Vec<u32> {
    let [high, low] = li(T0, addi(A0, ZERO, 2));
    let fences = 4 * between.len() as i32;
    let mut words = vec![high, low, auipc(T1, 0), sw(T0, 8 + fences, T1)];
    words.extend(between);
    words.extend([addi(A0, ZERO, 1), ret()]);
    words
}

#[test]
fn code_that_a_program_has_changed_is_refused_at_fence_i() {
    let core = common::everything();
    let run = |words: &[u32], flags: u32| {
        let load = Load { flags, ..code(0x1000, words) };
        let image = Image::load(&elf(0x1000, &[load]), &core).unwrap();
        bare::run(&image, None, LIMIT, &mut Vec::new()).unwrap()
    };
    let writable = 7;
    // Without the fence, the new instruction need not be seen.
    assert_eq!(run(&patching(&[]), writable).exit_code, Some(1));
    let trap = run(&patching(&[fence_i()]), writable).trap.unwrap().to_string();
    assert_eq!(
        trap,
        "fence.i after the program has changed its code at 0x1016: code runs here as it was loaded, at pc 0x00001010"
    );
    // A plain fence does not affect code, and fence.i does not trap in a program that has changed none.
    assert_eq!(run(&patching(&[fence()]), writable).exit_code, Some(1));
    assert_eq!(run(&[fence_i(), addi(A0, ZERO, 3), ret()], writable).exit_code, Some(3));
    assert_eq!(run(&[fence_i(), addi(A0, ZERO, 3), ret()], 5).exit_code, Some(3));
    // Execute-only memory cannot be written.
    assert!(run(&patching(&[fence_i()]), 5).trap.unwrap().to_string().contains("which is read-only"));
}

#[test]
fn a_segment_of_zeros_gets_contents() {
    let file = elf(0x1000, &[code(0x1000, &[ret()]), data(0x2000, &[], 8)]);
    let image = load(&with_segment(&file, 0x2000, b"contents").unwrap()).unwrap();
    assert_eq!(image.segments()[1].bytes(), b"contents");
    assert_eq!(image.segments()[0].bytes(), load(&file).unwrap().segments()[0].bytes());
    let refused = |address, data: &[u8]| with_segment(&file, address, data).unwrap_err().to_string();
    assert!(refused(0x3000, b"contents").ends_with("it has no segment at 0x3000; link it again"));
    assert!(refused(0x2000, b"c").ends_with("its segment at 0x2000 has 8 bytes, not 1; link it again"));
    // A program of 64 bits, linked by a linker: its offsets equal the addresses modulo the alignment.
    let load = |file: &[u8]| Image::load(file, &common::everything_64()).unwrap();
    let image = load(PROGRAM_64);
    let last = image.segments().last().unwrap();
    let other = vec![0xa5; last.size() as usize];
    let changed = load(&with_segment(PROGRAM_64, last.address(), &other).unwrap());
    assert_eq!(changed.segments().last().unwrap().bytes(), other);
    // The first segment has the headers of the file.
    assert_eq!(changed.segments()[1].bytes(), image.segments()[1].bytes());
}

#[test]
fn segments_are_placed_in_regions() {
    let image = load(&elf(0x1000, &[code(0x1000, &[ret()]), data(0x2000, &[1, 2, 3], 8)])).unwrap();
    assert_eq!(format!("{:?}", image.segments()), "[code of 4 bytes at 0x1000, data of 8 bytes at 0x2000]");
    let text = image.segments()[0].bytes();
    let mut memory = [0xff; 16];
    let mut space = AddressSpace::new()
        .with(Region::read_only("program", 0x1000, text))
        .with(Region::memory("memory", 0x1ff8, &mut memory));
    space.place(&image).unwrap();
    drop(space);
    assert_eq!(memory, [255, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 0, 0, 0, 0, 0]);

    let place = |regions: Vec<Region<'_>>| {
        let mut space = AddressSpace::new();
        regions.into_iter().for_each(|region| space.push(region));
        space.place(&image).unwrap_err().to_string()
    };
    let program = || Region::read_only("program", 0x1000, text);
    assert_eq!(
        place(vec![program(), Region::memory("memory", 0x2000, &mut [0; 6])]),
        "the data segment of 8 bytes at 0x2000 fits into no region; the nearest is memory, 6 bytes at 0x2000: make \
         the program's data smaller"
    );
    assert_eq!(
        place(vec![program(), Region::memory("memory", 0x3000, &mut [0; 64])]),
        "the data segment of 8 bytes at 0x2000 fits into no region; the nearest is memory, 64 bytes at 0x3000: link \
         the data there"
    );
    assert!(
        place(vec![program(), Region::read_only("header", 0x2000, &[0; 64])])
            .contains("the nearest is header")
    );
    assert!(place(vec![program(), Region::device("device", 0x2000, 64)]).contains("fits into no region"));
    assert_eq!(
        place(vec![]),
        "the code segment of 4 bytes at 0x1000 fits into no region; there are no regions"
    );
}

#[test]
fn a_bare_program_may_be_linked_anywhere() {
    // Counts in its data, uses the stack and returns. The exit code is its count.
    for base in [0, 0x10000, 0x8000_0000, 0xffff_0000] {
        let words = [
            auipc(T0, 1),
            lw(A0, 0, T0),
            addi(A0, A0, 1),
            sw(A0, 0, T0),
            sw(A0, -4, SP),
            lw(A0, -4, SP),
            ret(),
        ];
        let file = elf(base, &[code(base, &words), data(base + 4096, &[41, 0, 0, 0], 64)]);
        let (result, _) = run(&file, None);
        assert_eq!((result.exit_code, result.trap), (Some(42), None), "at {base:#x}");
        // The same without data, with a separate stack.
        let file = elf(base, &[code(base, &[sw(SP, -4, SP), addi(A0, ZERO, -1), ret()])]);
        assert_eq!(run(&file, None).0.exit_code, Some(-1));
    }
    // The heap continues the data.
    let file = elf(0x1000, &[code(0x1000, &[lui(T0, 2), sw(T0, 2, T0), ret()]), data(0x2000, &[], 4)]);
    let core = Core { misaligned: nicety_hpu::Misaligned::Costs, ..Core::default() };
    let result = bare::run(&Image::load(&file, &core).unwrap(), None, 100, &mut Vec::new()).unwrap();
    assert_eq!(result.trap, None);
}

#[test]
fn bare_programs_that_do_not_fit_are_refused() {
    let error = |loads: &[Load]| {
        let image = load(&elf(0, loads)).unwrap();
        bare::run(&image, None, 10, &mut Vec::new()).unwrap_err().to_string()
    };
    let many: Vec<_> = (0..16).map(|i| code(0x1000 * i, &[ret()])).collect();
    assert!(error(&many).contains("it has 16 segments; a bare program may have 15"));
    let around = [code(0x1000, &[ret()]), data(0xfff0_0000, &[], 16)];
    assert!(error(&around).contains("there are no 16777216 bytes for a stack"), "{}", error(&around));
}

#[test]
fn a_program_that_does_not_say_where_it_begins() {
    let image = load(&elf(0, &[code(0x1000, &[ret()])])).unwrap();
    let error = bare::run(&image, None, 10, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("entry 0x0, where there is no code") && error.contains("--entry"), "{error}");
}

#[test]
fn a_program_is_asked_whether_to_go_on() {
    let image = load(&elf(0x1000, &[code(0x1000, &[j(0)])])).unwrap();
    let mut looks = 0;
    let mut go_on = || {
        looks += 1;
        looks < 3
    };
    let ended = bare::run_while(&image, None, u64::MAX, &mut Vec::new(), &mut go_on);
    assert!(matches!(ended, Err(bare::BareError::Stopped)));
    assert_eq!(looks, 3);
}

#[test]
fn atomics_and_limits_in_bare_programs() {
    let words = [addi(A0, ZERO, 1), addi(T0, SP, -4), amoadd_w(ZERO, A0, T0), amoadd_w(A0, A0, T0), ret()];
    assert_eq!(run(&elf(0, &[code(0, &words)]), None).0.exit_code, Some(1));
    let (result, _) = run(&elf(0, &[code(0, &[amoadd_w(A0, A0, ZERO)])]), None);
    assert!(result.trap.unwrap().to_string().contains("which is read-only"));
    let (result, _) = run(&elf(0, &[code(0, &[j(0)])]), None);
    assert_eq!((result.cycles, result.exit_code), (LIMIT, None));
    assert!(result.trap.unwrap().to_string().contains("still running at its limit of 1000000 cycles"));
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no space left"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = bare::run(&load(PROGRAM).unwrap(), None, LIMIT, &mut Full).unwrap_err();
    assert_eq!(error.to_string(), "the program's output could not be written: no space left");
}

/// Loads, locates and runs a file briefly. The result does not matter.
fn survive(file: &[u8]) {
    let Ok(image) = load(file) else { return };
    for segment in image.segments() {
        for pc in (segment.address()..).step_by(6).take(40) {
            let _ = image.locate(pc).map(|location| location.to_string());
        }
    }
    for entry in [None, Some("payload_handler"), Some("header_handler")] {
        if let Ok(BareResult { trap: Some(trap), .. }) = bare::run(&image, entry, 300, &mut Vec::new()) {
            assert!(!trap.to_string().is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases(600)) })]

    #[test]
    fn random_bytes_are_no_reason_to_panic(mut file in prop::collection::vec(any::<u8>(), 0..400), header: bool) {
        if header {
            let whole = elf(0x1000, &[]);
            file.splice(..file.len().min(44), whole[..44].iter().copied());
        }
        survive(&file);
    }

    #[test]
    fn damaged_files_are_no_reason_to_panic(
        damage in prop::collection::vec((0..PROGRAM.len(), any::<u8>()), 1..12),
        cut in prop::option::of(0..PROGRAM.len()),
    ) {
        let mut file = PROGRAM.to_vec();
        for (at, byte) in damage {
            file[at] = byte;
        }
        file.truncate(cut.unwrap_or(file.len()));
        survive(&file);
    }
}

#[test]
fn names_from_files_are_escaped() {
    // A function and a source file with names that would turn the terminal red, move the cursor up and reverse text.
    // The file's name is in the line table, the function's in the symbols and in the debug information.
    let rename = |file: &mut Vec<u8>, from: &[u8], to: &[u8]| {
        let places: Vec<_> =
            file.windows(from.len()).enumerate().filter(|(_, w)| *w == from).map(|(at, _)| at).collect();
        assert!(!places.is_empty() && to.len() == from.len());
        places.into_iter().for_each(|at| file[at..at + from.len()].copy_from_slice(to));
    };
    let mut file = PROGRAM.to_vec();
    rename(&mut file, b"bad_pointer\0", b"\x1b[31m\xe2\x80\xae\xc2\x9ba\0");
    rename(&mut file, b"system_call\0", b"\x1b[2J\n\r\xff__xx\0");
    rename(&mut file, b"program.c\0", b"\x1b[1A.c\r\n\x07\0");
    let image = load(&file).unwrap();
    let name = image.functions().find(|name| name.contains('\x1b')).unwrap().to_owned();
    let (result, _) = run(&file, Some(&name));
    let trap = result.trap.unwrap().to_string();
    assert!(trap.contains("in \\x1b[2J\\x0a\\x0d\u{fffd}__xx at \\x1b[1A.c\\x0d\\x0a\\x07:"), "{trap}");
    assert!(!trap.chars().any(char::is_control), "{trap}");
    let error = image.require("\x1b[0m").unwrap_err().to_string();
    assert!(
        error
            .starts_with("no symbol \\x1b[0m is defined; the functions there are: \\x1b[31m\\u{202e}\\x9ba,"),
        "{error}"
    );
    // Without line tables the symbols locate it.
    rename(&mut file, b".debug_info", b"Xdebug_info");
    let image = load(&file).unwrap();
    let place = image.locate(image.require(&name).unwrap()).unwrap().to_string();
    assert_eq!(place, "in \\x1b[31m\\u{202e}\\x9ba");
}
