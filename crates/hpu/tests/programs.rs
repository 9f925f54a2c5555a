//! Real programs: compiled C with line tables, and ELF files made by hand or damaged.

mod common;

use common::{Load, cases, code, data, elf};
use nicety_hpu::asm::*;
use nicety_hpu::bare::{self, BareResult};
use nicety_hpu::{AddressSpace, Context, Core, Exit, Image, Isa, LoadError, Region, Reservations, Trap};
use proptest::prelude::*;
use std::sync::Arc;

const PROGRAM: &[u8] = include_bytes!("data/program.elf");
const SOURCE: &str = include_str!("data/program.c");
const LIMIT: u64 = 1_000_000;

/// Byte offsets in an ELF header.
const CLASS: usize = 4;
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
    // A function by itself: what it returns is the exit code.
    let (result, output) = run(PROGRAM, Some("header_handler"));
    assert_eq!((result.exit_code, output.as_str()), (Some(0), ""));
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
            "ecall with a7 = 1234, which nobody serves; a bare program has 64",
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
    // Rename the line table's section: function names are left.
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
            patched(CLASS, 2),
            "a 64-bit ELF file, not a 32-bit little-endian RISC-V ELF file; compile it for riscv32",
        ),
        (patched(ENDIAN, 2), "a big-endian ELF file, not a 32-bit"),
        (patched(MACHINE, 40), "an ELF file for ARM, not a 32-bit"),
        (patched(MACHINE, 3), "an ELF file for x86, not"),
        (patched(MACHINE, 8), "an ELF file for MIPS, not"),
        (patched(MACHINE, 62), "an ELF file for machine 62"),
        (
            patched(TYPE, 1),
            "an object file, not an executable linked to fixed addresses; link it with -static",
        ),
        (patched(TYPE, 3), "a shared or position-independent file, not an executable"),
        (patched(TYPE, 4), "a core dump"),
        (patched(TYPE, 9), "an ELF file of an unknown type"),
        (
            patched(FLAGS, 2),
            "it was compiled for a floating-point calling convention (-mabi=ilp32f), which the core (rv32imac_zicsr)",
        ),
        (
            patched(FLAGS, 4),
            "it was compiled for a double-precision calling convention (-mabi=ilp32d), which",
        ),
        (
            patched(FLAGS, 8),
            "it was compiled for 16 registers (rv32e), which the core (rv32imac_zicsr) lacks",
        ),
        (
            Image::load(PROGRAM, &Core { isa: Isa::RV32I, ..Core::default() }).unwrap_err().to_string(),
            "it was compiled for compressed instructions, which the core (rv32i) lacks; compile it for that isa",
        ),
    ] {
        assert!(error.contains(text), "{error}");
    }
    // Where there are float registers, arguments may come in them.
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
        "a damaged ELF file: it has no code; write at least one function that is not static"
    );
    assert_eq!(
        error(&[data(0x1000, &[1], 8)]),
        "a damaged ELF file: it has no code; write at least one function that is not static"
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
    // Counts in its data, uses the stack and returns; the exit code is what it counted.
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
        // The same without data: a stack of its own.
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
    let large = [code(0, &[ret()]), data(0x1000, &[], 0x8000_0000)];
    assert!(error(&large).contains("segments have 268435456 bytes at most"));
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

/// Loads, locates and runs a file for a little while; what comes out does not matter.
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
