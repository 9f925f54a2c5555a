//! Programs that Linux's verifier refuses: on a core with checks they trap where the interpreter traps.

use crate::card::{CPUS, Card, request};
use crate::toolchain::{Cores, compiled};
use nicety_ebpf::{Limits, Machine, Object, Packet};
use nicety_hpu::TrapKind;
use nicety_xdp::Request;

/// The number behind the last colon of a place such as `program x, instruction 3 (x.c:12)`.
fn line(place: &str) -> Option<u32> {
    place.rsplit(':').next()?.trim_end_matches(')').parse().ok()
}

/// Programs, and a part of the reason of their traps.
const CASES: [(&str, &str); 22] = [
    ("packet_end", "reads 1 byte outside the packet"),
    ("packet_begin", "reads 1 byte outside the packet"),
    ("packet_write", "writes 4 bytes outside the packet"),
    ("stack_below", "reads 8 bytes outside the stack"),
    ("stack_above", "writes 8 bytes outside the stack"),
    ("value_index", "reads 4 bytes outside"),
    ("value_padding", "reads 4 bytes outside"),
    ("null", "reads 8 bytes outside"),
    ("entry", "reads 8 bytes outside"),
    ("constant", "writes 4 bytes outside"),
    ("variable", "writes 4 bytes outside"),
    ("context_word", "reads 4 bytes that are not a word of the context"),
    ("number", "reads 4 bytes outside packet, stack, map values and context"),
    ("key", "an argument of bpf_map_lookup_elem"),
    ("map", "an argument of bpf_map_lookup_elem"),
    ("kind", "an argument of bpf_map_push_elem"),
    ("buffer", "an argument of bpf_xdp_load_bytes"),
    ("other_context", "an argument of bpf_xdp_adjust_tail"),
    ("record", "writes 1 byte outside"),
    ("finished", "an argument of bpf_ringbuf_submit"),
    ("callback", "reads 4 bytes outside packet, stack, map values and context"),
    ("function", "reads 8 bytes outside packet, stack, map values and context"),
];

#[test]
fn a_forbidden_access_traps_with_its_line() {
    let file = compiled("unverified");
    let object = Object::read(&file).unwrap();
    assert_eq!(object.programs.len(), CASES.len());
    for cores in Cores::ALL {
        for (name, reason) in CASES {
            let request = Request { unverified: true, ..request(name, cores, &[]) };
            let mut card = Card::new(&format!("unverified_{name}"), &file, cores, &request);
            let mut machine = Machine::new(&object, Limits { cpus: CPUS, ..Limits::default() }).unwrap();
            let number = machine.add(&object, object.program(Some(name)).unwrap()).unwrap();
            for first in [0, 1, 0] {
                let frame = [&[first, 2][..], &[0; 58]].concat();
                let ended = machine.run(number, &mut Packet::new(&frame, 0).unwrap());
                let found = card.checked(&frame, 0);
                assert_eq!(ended.is_err(), first == 1, "{name}: {ended:?}");
                let trap = match (ended, found) {
                    (Ok(_), Ok(_)) => continue,
                    (Err(expected), Err(found)) => (expected, found),
                    (ended, found) => panic!("{name} on {cores:?}: {ended:?}, {found:?}"),
                };
                let (expected, found) = trap;
                assert_eq!(found.kind, TrapKind::Breakpoint, "{name}: {found}");
                let place = found.location.as_ref().unwrap();
                assert_eq!(place.line, line(&expected.place), "{name} on {cores:?}: {found}; {expected}");
                assert!(found.to_string().starts_with(reason), "{name}: {found}; {expected}");
            }
        }
    }
}
