//! Traps read as sentences, with their places and hints.

use super::*;

fn text(kind: TrapKind) -> String {
    let location = Location {
        function: Some("payload_handler".to_owned()),
        file: Some("/home/you/ping.c".to_owned()),
        line: Some(42),
        called: None,
        reason: None,
    };
    Trap { kind, pc: 0x1d00_0012, location: Some(location) }.to_string()
}

#[track_caller]
fn check(cases: &[(TrapKind, &str)]) {
    for (kind, expected) in cases {
        let place = ", in payload_handler at ping.c:42 (pc 0x1d000012)";
        assert_eq!(text(*kind), format!("{expected}{place}"));
    }
}

#[test]
fn traps_at_accesses_read_as_sentences() {
    let (read, write) = (Access::Read, Access::Write);
    let nearest = Some(Nearest { region: "packet", base: 0x1000, size: 64 });
    let out = |access, address, size| TrapKind::OutOfRegion { access, address, size, nearest };
    check(&[
        (out(write, 0x9_1234, 4), "store of 4 bytes to 0x91234 outside its memory"),
        (
            out(write, 0x1040, 1),
            "store of 1 byte to 0x1040 outside its memory, 0 bytes past the end of packet \
             (64 bytes at 0x1000)",
        ),
        (
            out(read, 0xfff, 2),
            "load of 2 bytes from 0xfff outside its memory, 1 bytes before packet (64 bytes at 0x1000)",
        ),
        (
            out(read, 0x103e, 4),
            "load of 4 bytes from 0x103e outside its memory, over the end of packet \
             (64 bytes at 0x1000)",
        ),
        (
            TrapKind::OutOfRegion { access: read, address: 8, size: 4, nearest: None },
            "load of 4 bytes from 0x8 outside its memory (a null pointer?)",
        ),
        (
            TrapKind::OutOfRegion { access: Access::Execute, address: 0, size: 2, nearest: None },
            "jump to 0x0 outside the code (a null pointer?)",
        ),
        (
            TrapKind::Misaligned { access: Access::Execute, address: 0x102, size: 4 },
            "jump to 0x102, in the middle of an instruction word",
        ),
        (
            TrapKind::Misaligned { access: read, address: 0x102, size: 4 },
            "load of 4 bytes at 0x102, which is not a multiple of 4",
        ),
        (
            TrapKind::Forbidden { access: write, address: 0x20, size: 1, region: "header" },
            "store of 1 byte to 0x20 in header, which is read-only",
        ),
        (
            TrapKind::Forbidden { access: read, address: 0x20, size: 2, region: "doorbell" },
            "load of 2 bytes from 0x20 in doorbell, which is write-only",
        ),
        (
            TrapKind::PartOfWord { access: read, address: 0x20, size: 2, region: "the task" },
            "load of 2 bytes from 0x20 in the task, which has whole words only",
        ),
        (
            TrapKind::AtomicOnDevice { address: 0x20, region: "doorbell" },
            "atomic access to 0x20 in doorbell, a device without atomics",
        ),
    ]);
}

#[test]
fn other_traps_read_as_sentences() {
    check(&[
        (
            TrapKind::StackExhausted { pointer: 0xff0, bottom: 0x1000, size: 512 },
            "stack overflow: the stack pointer moves to 0xff0, 16 bytes below the stack of 512 bytes at 0x1000",
        ),
        (
            TrapKind::StackOverflow { address: 0xff0, bottom: 0x1000, size: 512 },
            "stack overflow: access to 0xff0, 16 bytes below the stack of 512 bytes at 0x1000",
        ),
        (
            TrapKind::StackOverflow { address: 0x2000, bottom: 0x1000, size: 512 },
            "stack overflow: access to 0x2000 of 512 bytes at 0x1000",
        ),
        (
            TrapKind::CycleLimit { limit: 100 },
            "still running at its limit of 100 cycles (does it loop for ever?)",
        ),
        (TrapKind::Breakpoint, "ebreak (abort or a compiler's trap)"),
        (
            TrapKind::CallRefused { call: "nfp_read", why: "no bytes; write 1 at least" },
            "nfp_read: no bytes; write 1 at least",
        ),
        (
            TrapKind::UnknownCall { number: 7, served: "there are 64 and 93" },
            "ecall with a7 = 7, which is no known call; there are 64 and 93",
        ),
        (
            TrapKind::IllegalInstruction { word: 0x02c5_c533, why: Illegal::Needs(Extension::M) },
            "illegal instruction 0x02c5c533 (it needs extension m, which the isa does not name)",
        ),
        (
            TrapKind::IllegalInstruction { word: 0, why: Illegal::Zero },
            "illegal instruction 0x0000 (zeros: a compiler's trap, or no code)",
        ),
        (
            TrapKind::IllegalInstruction { word: 0x3000_2573, why: Illegal::NoSuchCsr(0x300) },
            "illegal instruction 0x30002573 (there is no CSR 0x300 here)",
        ),
        (
            TrapKind::IllegalInstruction { word: 0xc000_1573, why: Illegal::ReadOnlyCsr(0xc00) },
            "illegal instruction 0xc0001573 (CSR 0xc00 is read-only)",
        ),
        (
            TrapKind::IllegalInstruction { word: 0xffff_ffff, why: Illegal::Unknown },
            "illegal instruction 0xffffffff (no instruction of this core)",
        ),
    ]);
}

#[test]
fn the_error_of_a_trap_does_not_depend_on_names() {
    let error = |kind, reason: Option<&str>| {
        let location = Location {
            function: Some("frame_stack_outside its memory".to_owned()),
            reason: reason.map(str::to_owned),
            ..Location::default()
        };
        Trap { kind, pc: 0, location: Some(location) }.error()
    };
    let out = |access| TrapKind::OutOfRegion { access, address: 1 << 20, size: 4, nearest: None };
    assert_eq!(error(out(Access::Read), None), TrapError::OutOfBounds);
    assert_eq!(error(out(Access::Execute), None), TrapError::Other);
    assert_eq!(
        error(TrapKind::Misaligned { access: Access::Read, address: 1, size: 4 }, None),
        TrapError::Other
    );
    assert_eq!(error(TrapKind::Breakpoint, None), TrapError::Other);
    let undefined = |reason| error(TrapKind::Breakpoint, Some(&format!("undefined behaviour: {reason}")));
    assert_eq!(undefined("an index outside its array"), TrapError::OutOfBounds);
    assert_eq!(undefined("a division by zero"), TrapError::DivisionByZero);
    assert_eq!(undefined("a null pointer"), TrapError::Other);
    // A reason belongs to a compiler's trap alone.
    assert_eq!(
        error(out(Access::Write), Some("undefined behaviour: a division by zero")),
        TrapError::OutOfBounds
    );
}

#[test]
fn a_location_prints_its_known_parts() {
    let location = |function: Option<&str>, file: Option<&str>, line| Location {
        function: function.map(str::to_owned),
        file: file.map(str::to_owned),
        line,
        called: None,
        reason: None,
    };
    let called = |location: Location| Location { called: Some("PtlHandlerCAS".to_owned()), ..location };
    let text = called(location(Some("f"), Some("/h/f.c"), Some(3))).to_string();
    assert_eq!(text, "in PtlHandlerCAS, called in f at f.c:3");
    assert_eq!(called(location(None, Some("f.c"), Some(3))).to_string(), "in PtlHandlerCAS, called at f.c:3");
    let location = |function, file, line| location(function, file, line).to_string();
    assert_eq!(location(Some("f"), None, None), "in f");
    assert_eq!(location(None, Some("C:\\h\\f.c"), Some(3)), "at f.c:3");
    assert_eq!(location(Some("f"), Some("f.c"), None), "in f at f.c");
    assert_eq!(location(None, None, Some(1)), "at an unknown place");
    let trap = Trap { kind: TrapKind::Breakpoint, pc: 16, location: None };
    assert_eq!(trap.to_string(), "ebreak (abort or a compiler's trap), at pc 0x00000010");
    assert_eq!(trap.address(), None);
    let reason = Some("undefined behaviour: an index outside its array".to_owned());
    let checked = Location { reason, called: None, ..called(Location::default()) };
    let zero = TrapKind::IllegalInstruction { word: 0, why: Illegal::Zero };
    let trap = |kind| Trap { kind, pc: 16, location: Some(checked.clone()) }.to_string();
    let expected = "undefined behaviour: an index outside its array, at an unknown place (pc 0x00000010)";
    assert_eq!((trap(zero), trap(TrapKind::Breakpoint)), (expected.to_owned(), expected.to_owned()));
    assert!(trap(TrapKind::CycleLimit { limit: 3 }).starts_with("still running"));
    let kind = TrapKind::StackOverflow { address: 0x2000, bottom: 0x1000, size: 512 };
    assert_eq!(Trap { kind, pc: 0, location: None }.address(), Some(0x2000));
}
