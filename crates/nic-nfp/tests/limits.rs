//! Tests the limits of a microengine, and the errors beyond these limits.

use crate::{Rig, program, spec, try_spec};
use nicety_hpu::Image;
use nicety_hpu::asm::*;
use nicety_nic_nfp::{Outcome, Program, map, number};

fn failure(words: &[u32], arguments: &[u32]) -> String {
    let mut rig = Rig::running(&spec(&[]), words, &[(0, 1)], arguments);
    rig.run();
    match rig.nfp.outcome(0, 0) {
        Some(Outcome::Trapped(trap)) => trap.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn accesses_outside_are_told() {
    for (words, argument, text) in [
        (vec![lw(A0, 0, A0)], 0x5000_0000, "load of 4 bytes from 0x50000000 outside"),
        (vec![sw(A0, 0, A0)], map::CLS + 0x1_0000, "0 bytes past the end of CLS (65536 bytes at 0x20000000)"),
        (vec![lw(A0, 0, A0)], map::LOCAL + 4096, "past the end of the stack (4096 bytes at 0x10000000)"),
        (vec![lw(A0, 2, A0)], map::CTM, "which is not a multiple of 4"),
        (vec![amoadd_w(A0, A0, A0)], map::CLS + 2, "which is not a multiple of 4"),
        (vec![amoadd_w(A0, A0, A0)], 0x6000_0000, "store of 4 bytes to 0x60000000 outside"),
        (vec![sw(A0, 0, A0)], map::CODE, "in the code store, which is read-only"),
        (
            vec![
                sw(A0, -4096 / 2, SP),
                sw(A0, -2048, SP),
                addi(SP, SP, -2048),
                sw(A0, -2047 - 1, SP),
                addi(SP, SP, -2048),
                sw(A0, -4, SP),
            ],
            0,
            "stack overflow",
        ),
    ] {
        let text_is = failure(&words, &[argument]);
        assert!(text_is.contains(text), "'{text}' is not in: {text_is}");
    }
    let call = |number: u32, len| vec![addi(A2, ZERO, len), addi(A7, ZERO, number as i32), ecall(), ret()];
    for (words, arguments, text) in [
        (call(number::READ, 16), [map::LOCAL, map::CTM + 0x3_fff8], "0x3003fff8 outside"),
        (call(number::READ, 16), [map::LOCAL + 4090, map::CTM], "store of 16 bytes to 0x10000ffa outside"),
        (call(number::WRITE, 16), [map::CLS, map::CTM], "load of 16 bytes from 0x30000000 outside"),
        (
            call(number::WRITE, 65),
            [map::CLS, map::LOCAL],
            "nfp_write: more bytes than the transfer registers hold",
        ),
        (call(number::SIGNAL, 0), [60, 0], "nfp_signal: there is no such microengine"),
        (call(number::SIGNAL, 0), [0, 8], "nfp_signal: there is no such context"),
        (call(number::SIGNAL, 16), [0, 0], "nfp_signal: there is no such signal"),
        (call(0x123, 0), [0, 0], "ecall with a7 = 291, which is no known call; nfp.h"),
    ] {
        let text_is = failure(&words, &arguments);
        assert!(text_is.contains(text), "'{text}' is not in: {text_is}");
    }
}

#[test]
fn there_is_no_division() {
    let text = failure(&[mul(A0, A0, A0), divu(A0, A0, A0)], &[3]);
    assert!(text.contains("it needs extension m, which the isa does not name"), "{text}");
}

#[test]
fn a_failure_stops_its_context_alone() {
    let spec = spec(&[]);
    let words = [beq(A0, ZERO, 8), ret(), lw(A0, 0, ZERO)];
    let mut rig = Rig::new(&spec);
    rig.nfp.load(3, &program(&spec, &words), 2).unwrap();
    rig.nfp.start(3, 0, map::CODE, &[0]);
    rig.nfp.start(3, 1, map::CODE, &[7]);
    rig.run();
    assert!(matches!(rig.nfp.outcome(3, 0), Some(Outcome::Trapped(_))));
    assert_eq!(rig.nfp.outcome(3, 1), Some(Outcome::Returned(7)));
}

#[test]
fn a_signal_that_never_comes_is_a_deadlock() {
    let words = [addi(A7, ZERO, number::WAIT_ANY as i32), ecall(), ret()];
    let mut rig = Rig::running(&spec(&[]), &words, &[(5, 1)], &[0b101]);
    let nfp = rig.nfp.clone();
    rig.world.sim(nicety_types::NodeId(0)).spawn_program("card", async move {
        let _ = nfp.finished(5, 0).await;
    });
    let error = rig.world.run().unwrap_err().to_string();
    let text = "the end of microengine 5, context 0, which waits for any of its signals 0, 2";
    assert!(error.contains(text), "{error}");
}

#[test]
fn a_stack_belongs_to_its_context() {
    // The second of two contexts has the upper half of local memory. The address 16 bytes below is in the stack of the
    // first context.
    let spec = spec(&[]);
    let mut rig = Rig::new(&spec);
    rig.nfp.load(0, &program(&spec, &[addi(SP, SP, -2048), sw(A0, -16, SP), ret()]), 2).unwrap();
    rig.nfp.start(0, 1, map::CODE, &[]);
    rig.run();
    let Some(Outcome::Trapped(trap)) = rig.nfp.outcome(0, 1) else { panic!() };
    assert!(
        trap.to_string().contains("stack overflow: access to 0x100007f0, 16 bytes below the stack of 2048"),
        "{trap}"
    );
}

/// Returns the outcome of code on one of eight contexts, each with 512 bytes of stack.
fn on_context(context: usize, words: &[u32], arguments: &[u32]) -> Outcome {
    let spec = spec(&[]);
    let mut rig = Rig::new(&spec);
    rig.nfp.load(0, &program(&spec, words), 8).unwrap();
    rig.nfp.start(0, context, map::CODE, arguments);
    rig.run();
    rig.nfp.outcome(0, context).unwrap()
}

#[test]
fn every_address_of_local_memory_is_one_contexts() {
    for context in 0..8u32 {
        let own = map::LOCAL + 512 * context..map::LOCAL + 512 * (context + 1);
        for address in (map::LOCAL..map::LOCAL + 4096).step_by(28) {
            let outcome = on_context(context as usize, &[sw(A1, 0, A0), lw(A0, 0, A0), ret()], &[address, 7]);
            match outcome {
                Outcome::Returned(value) => assert!(own.contains(&address) && value == 7, "{address:#x}"),
                Outcome::Trapped(trap) => assert!(!own.contains(&address), "{context}: {trap}"),
            }
        }
    }
}

/// Recursion and large frames move the stack pointer without a store below the stack.
#[test]
fn a_stack_pointer_that_leaves_its_stack_is_an_overflow() {
    let down = |by: i32, times: i32| {
        [
            addi(T0, ZERO, times),
            addi(SP, SP, -by),
            addi(T0, T0, -1),
            bne(T0, ZERO, -8),
            addi(A0, ZERO, 5),
            ret(),
        ]
    };
    for context in 0..8 {
        assert_eq!(on_context(context, &down(64, 8), &[]), Outcome::Returned(5), "the last byte of it");
        for (by, times, below) in [(64, 9, 64), (528, 1, 16), (2032, 1, 1520), (16, 1000, 16)] {
            let Outcome::Trapped(trap) = on_context(context, &down(by, times), &[]) else {
                panic!("context {context}: {by} bytes, {times} times")
            };
            let bottom = map::LOCAL + 512 * context as u32;
            let text = format!("{below} bytes below the stack of 512 bytes at {bottom:#x}");
            assert!(trap.to_string().contains(&text), "{trap}");
            // The trap is at the instruction after the one that moved the stack pointer. Both belong to the same line
            // of C.
            assert_eq!(trap.pc, map::CODE + 8);
        }
    }
}

#[test]
fn programs_that_do_not_fit_are_refused() {
    let small = spec(&["hpu.code=64 B", "hpu.local_memory=256 B"]);
    let error = Program::new(Image::from_words(map::CODE, &[nop(); 17], &small.core), &small).unwrap_err();
    assert!(error.to_string().contains("68 bytes of code and constants do not fit"), "{error}");
    let error = Program::new(Image::from_words(0x1000, &[nop()], &small.core), &small).unwrap_err();
    assert!(error.to_string().contains("its code at 0x1000 are in no part of a microengine"), "{error}");
    let error =
        Program::load(include_bytes!("../../apps/tests/data/tsp.elf"), &spec(&["hpu.local_memory=1 KiB"]))
            .unwrap_err();
    assert!(
        error.to_string().contains("bytes of data do not fit a microengine's local memory of 1024"),
        "{error}"
    );

    let rig = Rig::new(&small);
    let fits = program(&small, &[ret()]);
    for (contexts, text) in [
        (0, "no contexts"),
        (9, "9 processes, but a microengine has 8 contexts (hpu.contexts)"),
        (5, "0 bytes of data leave 48 bytes of stack for each of 5 contexts"),
    ] {
        let error = rig.nfp.load(0, &fits, contexts).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    rig.nfp.load(0, &fits, 4).unwrap();
}

#[test]
fn errors_of_a_spec_are_reported() {
    for (text, expected) in [
        ("hpu.contexts=9", &["hpu.contexts", "8"][..]),
        ("hpu.contexts=0", &["hpu.contexts", "1"]),
        ("hpu.cores=0", &["hpu.cores"]),
        ("hpu.isa=rv64i", &["hpu.isa", "rv32"]),
        ("hpu.local_memry=4 KiB", &["hpu.local_memry", "local_memory"]),
        ("hpu.cycles.crc32=0", &["hpu.cycles.crc32"]),
        ("hpu.cycles.signal=0", &["hpu.cycles.signal", "1"]),
        ("memory.cls.read=0", &["memory.cls.read", "1"]),
        ("memory.cls.size=64", &["memory.cls.size"]),
        ("memory.cls.width=0", &["memory.cls.width"]),
        ("memory.emem.size=4 GiB", &["memory.emem.size"]),
    ] {
        let error = try_spec(&[text]).unwrap_err();
        for part in expected {
            assert!(error.contains(part), "{text}: no '{part}' in\n{error}");
        }
    }
    let error = try_spec(&["hpu.cycles.command=40"]).unwrap_err();
    assert!(error.contains("it is less than the cost of the instruction that calls it"), "{error}");
}
