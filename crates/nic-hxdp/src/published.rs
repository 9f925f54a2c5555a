//! Programs that the paper publishes: dumps of objdump, their rows, and the rate of the simple firewall.
//!
//! The folder `parallelizer/xdp_prog_dump` of the repository axbryd/hXDP-Artifacts has the dumps. A dump has no maps, so a map has
//! a number by the helper that takes it.

use crate::cycles::cycles;
use crate::program::{HxdpError, rows};
use crate::spec::HxdpSpec;
use nicety_ebpf::instruction::{CALL, CONSTANT_MAP, JMP};
use nicety_ebpf::lanes::Schedule;
use nicety_ebpf::{
    Helper, Instruction, Limits, Linked, Machine, MapDefinition, MapKind, ObjectError, Packet, Trace,
};

/// The dump of the simple firewall.
pub const FIREWALL: &str = "nec_udp_firewall";

/// The interfaces of frames of the simple firewall: from inside, and from outside.
pub const INSIDE: u32 = 1;
/// The other side.
pub const OUTSIDE: u32 = 5;

/// Bytes of a frame of 64 bytes with its check sequence.
const FRAME: usize = 60;

/// Reads the bytes of a dump. Maps have numbers by the helper that takes them: 1 for a map of devices, 0 for others.
///
/// # Errors
/// The text has no instruction, or one that does not exist.
pub fn read_dump(name: &str, text: &str) -> Result<Linked, HxdpError> {
    let mut slots: Vec<Instruction> = text.lines().flat_map(slots_of).collect();
    for at in 0..slots.len() {
        if slots[at].is_wide() {
            let call = call_behind(&slots, at);
            slots[at].src = CONSTANT_MAP;
            slots[at].imm = i32::from(call.is_some_and(|call| call.imm == Helper::RedirectMap as i32));
        }
    }
    let refused = |problem: String| {
        let advice = "write the output of llvm-objdump -d of an eBPF object".to_owned();
        HxdpError::Object(ObjectError::Refused { place: format!("dump {name}"), problem, advice })
    };
    if slots.is_empty() {
        return Err(refused("it has no instruction".to_owned()));
    }
    Linked::of_slots(name, slots).map_err(|error| refused(error.to_string()))
}

/// The instructions of a line: a number and a colon, and eight bytes for each instruction.
fn slots_of(line: &str) -> Vec<Instruction> {
    let Some((number, rest)) = line.trim_start().split_once(':') else { return Vec::new() };
    if number.parse::<u32>().is_err() {
        return Vec::new();
    }
    let byte = |word: &str| (word.len() == 2).then(|| u8::from_str_radix(word, 16).ok()).flatten();
    let bytes: Vec<u8> = rest.split_whitespace().map_while(byte).collect();
    bytes.as_chunks::<8>().0.iter().map(|slot| Instruction::read(*slot)).collect()
}

/// The first call behind a slot, on the way of jumps without condition.
fn call_behind(slots: &[Instruction], mut at: usize) -> Option<Instruction> {
    for _ in 0..slots.len() {
        let slot = *slots.get(at)?;
        if slot.code == CALL {
            return Some(slot);
        }
        let goes = slot.code == JMP;
        at = at.checked_add_signed(1 + if goes { isize::from(slot.offset) } else { 0 })?;
    }
    None
}

/// The rows of a dump on a card.
///
/// # Errors
/// The card lacks a helper, or rows.
pub fn dump_rows(spec: &HxdpSpec, program: &Linked) -> Result<Schedule, HxdpError> {
    rows(spec, program)
}

/// A machine with the maps that the numbers of a dump name: flows of 16 bytes, and devices with a port for each key.
///
/// # Panics
/// Never: the maps are small.
pub fn machine() -> Machine {
    let map = |kind: MapKind, key_size, value_size| MapDefinition {
        name: kind.name().to_owned(),
        kind: kind as u32,
        key_size,
        value_size,
        max_entries: 64,
        ..MapDefinition::default()
    };
    let mut machine = Machine::empty(Limits::default());
    for map in [map(MapKind::Hash, 16, 4), map(MapKind::Devices, 4, 4)] {
        machine.add_map(&map).expect("a small map");
    }
    for port in 0u32..8 {
        let value = vec![2u32.to_le_bytes().to_vec()];
        machine.maps[1].set(&port.to_le_bytes(), &value, 0).expect("an entry");
    }
    machine
}

/// The cycles of the core for a frame of a known flow from an interface, and the rows that ran.
///
/// # Errors
/// The program stopped.
///
/// # Panics
/// Never: the frame has a valid length.
pub fn firewall(
    spec: &HxdpSpec,
    program: &Linked,
    made: &Schedule,
    interface: u32,
) -> Result<(u64, Trace), HxdpError> {
    let mut machine = machine();
    let number = machine.add_program(program.clone());
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0];
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 4, 0, 0, 26, 0, 0]);
    frame.resize(FRAME, 0);
    let mut run = |interface: u32| {
        let mut packet = Packet::new(&frame, 0).expect("a frame");
        packet.interface = interface;
        machine.run_rows(number, made, &mut packet).map_err(HxdpError::Trap)
    };
    // The first frame, from inside, makes the flow known.
    run(INSIDE)?;
    let (_, trace) = run(interface)?;
    let found = cycles(spec, &trace, FRAME as u64, &vec![0; trace.helpers.len()]);
    Ok((found.core, trace))
}

/// Frames a second, if each takes the core some cycles and leaves the card.
pub fn emitted_pps(spec: &HxdpSpec, core: u64) -> f64 {
    let emission = (FRAME as u64).div_ceil(spec.transfer.width) + spec.transfer.emission;
    spec.core.clock.hz() as f64 / core.max(emission) as f64
}
