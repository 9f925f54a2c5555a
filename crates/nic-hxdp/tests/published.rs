//! Dumps of published programs: those of a text here, and all in the folder that `NICETY_HXDP_DUMPS` names.

use crate::core::sume;
use nicety_ebpf::{Linked, Outcome, Packet, Trap};
use nicety_nic_hxdp::published::{INSIDE, dump_rows, emitted_pps, firewall, machine, read_dump};
use proptest::prelude::*;
use std::path::PathBuf;

/// Redirects by the first entry of a map of devices.
const DUMP: &str = "
forward.o:	file format ELF64-BPF

Disassembly of section xdp:
forward:
; return bpf_redirect_map(&ports, 0, 0);
       0:	18 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 	r1 = 0 ll
       2:	b7 02 00 00 00 00 00 00 	r2 = 0
       3:	b7 03 00 00 00 00 00 00 	r3 = 0
       4:	85 00 00 00 33 00 00 00 	call 51
       5:	95 00 00 00 00 00 00 00 	exit
";

/// The result of a program and the bytes of its frame, in sequence and in rows.
type Ended = Result<(Outcome, Vec<u8>), Trap>;

fn ended(program: &Linked, frame: &[u8], interface: u32) -> (Ended, Ended) {
    let made = dump_rows(&sume(), program).unwrap();
    let end = |in_rows: bool| {
        let mut machine = machine();
        let number = machine.add_program(program.clone());
        let mut packet = Packet::new(frame, 0).unwrap();
        packet.interface = interface;
        let outcome = match in_rows {
            true => machine.run_rows(number, &made, &mut packet).map(|(outcome, _)| outcome),
            false => machine.run(number, &mut packet),
        };
        outcome.map(|outcome| (outcome, packet.bytes()))
    };
    (end(false), end(true))
}

fn check(program: &Linked, frame: &[u8], interface: u32) {
    match ended(program, frame, interface) {
        (Ok((plain, bytes)), Ok((rows, changed))) => {
            assert_eq!(plain.value, rows.value, "{}: {frame:?}", program.name);
            assert_eq!(plain.redirect, rows.redirect, "{}: {frame:?}", program.name);
            assert_eq!(bytes, changed, "{}: {frame:?}", program.name);
        }
        // A dump has no sizes of maps, so a program may reach beyond an entry; in rows, other operations of the row may stop first.
        (Err(_), Err(_)) => {}
        (plain, rows) => panic!("{}: {plain:?} in sequence, {rows:?} in rows: {frame:?}", program.name),
    }
}

#[test]
fn a_dump_is_a_program_with_rows() {
    let program = read_dump("forward", DUMP).unwrap();
    assert_eq!(program.slots.len(), 6);
    let made = dump_rows(&sume(), &program).unwrap();
    let (core, trace) = firewall(&sume(), &program, &made, INSIDE).unwrap();
    assert_eq!(trace.rows, made.rows.len() as u64);
    // The emission of a frame of 60 bytes takes 7 cycles, and more cycles of the core lower the rate.
    assert_eq!(emitted_pps(&sume(), 1), 156.25e6 / 7.0);
    assert_eq!(emitted_pps(&sume(), core), 156.25e6 / core.max(7) as f64);
    check(&program, &[0; 60], INSIDE);
}

#[test]
fn a_text_without_instructions_is_refused() {
    for text in ["", "forward.o: file format", "0: zz", "0: 95 00", "no: 95 00 00 00 00 00 00 00"] {
        let error = read_dump("d", text).unwrap_err().to_string();
        assert!(error.contains("it has no instruction"), "{error}");
    }
    assert!(read_dump("d", "0: ff ff ff ff ff ff ff ff").unwrap_err().to_string().starts_with("dump d: "));
}

proptest! {
    #[test]
    fn any_text_is_a_program_or_refused(text in "([0-9]{1,3}: ([0-9a-f]{2} ){8,24}\n){0,9}|.{0,200}") {
        if let Ok(program) = read_dump("any", &text) {
            let _ = dump_rows(&sume(), &program);
        }
    }
}

/// The dumps of the folder that the user names.
fn dumps() -> Vec<Linked> {
    let Some(folder) = std::env::var_os("NICETY_HXDP_DUMPS") else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        read_dump(&name, &std::fs::read_to_string(path).unwrap()).unwrap()
    };
    // Others call helpers that the card lacks.
    paths.iter().map(read).filter(|program| dump_rows(&sume(), program).is_ok()).collect()
}

/// Frames of the protocols that the programs know, with damage.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![
        Just(vec![8, 0, 0x45]),
        Just(vec![0x86, 0xdd, 0x60]),
        Just(vec![0x81, 0, 0, 1, 8, 0, 0x45]),
        prop::collection::vec(any::<u8>(), 3)
    ];
    let protocol = prop_oneof![Just(6u8), Just(17), Just(1), Just(4), any::<u8>()];
    (kind, protocol, prop::collection::vec(any::<u8>(), 14..300)).prop_map(|(kind, protocol, mut bytes)| {
        for (at, byte) in kind.into_iter().enumerate() {
            if let Some(place) = bytes.get_mut(12 + at) {
                *place = byte;
            }
        }
        if let Some(place) = bytes.get_mut(23) {
            *place = protocol;
        }
        bytes
    })
}

#[test]
fn published_programs_give_the_same_in_rows() {
    let programs = dumps();
    if programs.is_empty() {
        return;
    }
    proptest!(|(frame in frame(), interface in 1u32..8)| {
        for program in &programs {
            check(program, &frame, interface);
        }
    });
}
