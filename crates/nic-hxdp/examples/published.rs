//! The programs of the hXDP paper, from its published bytecode: rows beside table 3, and the rate of the simple firewall.
//!
//!     cargo run -p nicety-nic-hxdp --example published -- FOLDER
//!
//! FOLDER has the dumps of llvm-objdump, as parallelizer/xdp_prog_dump of the repository axbryd/hXDP-Artifacts has them.

use nicety_ebpf::lanes::{Schedule, Switches, schedule};
use nicety_ebpf::{Instruction, Limits, Linked, Machine, MapDefinition, MapKind, Packet};
use nicety_nic_hxdp::{DESIGN, HxdpSpec, cycles};
use nicety_spec::{SHIPPED, Spec};
use std::path::Path;

/// A program of table 3: the file, and the paper's instructions and static IPC.
const TABLE: [(&str, u32, f64); 8] = [
    ("xdp1", 61, 1.70),
    ("xdp2", 78, 1.81),
    ("xdp_adjust_tail", 117, 2.72),
    ("xdp_router_ipv4", 119, 2.38),
    ("xdp_rxq_info", 81, 1.76),
    ("xdp_tx_iptunnel", 283, 2.83),
    ("nec_udp_firewall", 72, 2.66),
    ("katran", 268, 2.62),
];

/// The rate of the simple firewall, in Mpps (section 5.2.1).
const FIREWALL: f64 = 6.53;

fn main() {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("published: name the folder with the dumps");
        std::process::exit(2);
    };
    let spec = sume();
    let all = spec.core.switches;
    println!(
        "program           instr.  rows  IPC   paper  deviation  without movement  results in all lanes  no reduction"
    );
    for (name, instructions, ipc) in TABLE {
        let Some(program) = read(Path::new(&folder), name) else { continue };
        let rows = |switches: &Switches| schedule(&program, switches).map_or(0, |made| made.rows.len());
        let made = schedule(&program, &all).expect("it is in the paper");
        // The paper counts instructions as its dump does; table 3 divides them by rows.
        let own = made.slots_per_row();
        println!(
            "{name:16}  {:6}  {:4}  {own:.2}  {ipc:.2}   {:+7.1} %  {:16}  {:20}  {:12}   (table 3: {instructions} instructions)",
            made.slots,
            made.rows.len(),
            100.0 * (own / ipc - 1.0),
            rows(&Switches { movement: false, ..all }),
            rows(&Switches { lane_forwarding: false, ..all }),
            rows(&Switches::none(all.lanes)),
        );
    }
    let Some(program) = read(Path::new(&folder), "nec_udp_firewall") else { return };
    let made = schedule(&program, &all).expect("it is in the paper");
    for (way, interface) in [("from inside", 1), ("from outside", 5)] {
        firewall(&spec, &program, &made, way, interface);
    }
}

fn sume() -> HxdpSpec {
    let spec = Spec::load("hxdp-sume", &[], SHIPPED).unwrap_or_else(|errors| panic!("{errors}"));
    let (card, _) = nicety_nic_core::read(&spec, &[DESIGN]).unwrap_or_else(|errors| panic!("{errors}"));
    card.of::<HxdpSpec>().expect("it is of the design").clone()
}

/// Reads the bytes of a dump. Maps have numbers by the helper that takes them: 1 for a map of devices, 0 for others.
fn read(folder: &Path, name: &str) -> Option<Linked> {
    let path = folder.join(name);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return None;
        }
    };
    let mut slots: Vec<Instruction> = Vec::new();
    for line in text.lines() {
        let Some((number, rest)) = line.trim_start().split_once(':') else { continue };
        if number.parse::<u32>().is_err() {
            continue;
        }
        let byte = |word: &&str| word.len() == 2 && u8::from_str_radix(word, 16).is_ok();
        let words: Vec<&str> = rest.split_whitespace().take_while(byte).collect();
        let bytes: Vec<u8> = words.iter().filter_map(|word| u8::from_str_radix(word, 16).ok()).collect();
        slots.extend(bytes.chunks_exact(8).map(|slot| Instruction::read(slot.try_into().expect("eight"))));
    }
    for at in 0..slots.len() {
        if slots[at].is_wide() {
            let call = call_behind(&slots, at);
            slots[at].src = nicety_ebpf::instruction::CONSTANT_MAP;
            slots[at].imm = i32::from(call.is_some_and(|call| call.imm == 51));
        }
    }
    Some(Linked::of_slots(name, slots).unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// The first call behind a slot, on the way of jumps without condition.
fn call_behind(slots: &[Instruction], mut at: usize) -> Option<Instruction> {
    for _ in 0..slots.len() {
        let slot = *slots.get(at)?;
        if slot.code == nicety_ebpf::instruction::CALL {
            return Some(slot);
        }
        let goes = slot.code == nicety_ebpf::instruction::JMP;
        at = at.checked_add_signed(1 + if goes { isize::from(slot.offset) } else { 0 })?;
    }
    None
}

/// A frame of 64 bytes with its check sequence, of a known flow.
fn firewall(spec: &HxdpSpec, program: &Linked, made: &Schedule, way: &str, interface: u32) {
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
    let number = machine.add_program(program.clone());
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0];
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 4, 0, 0, 26, 0, 0]);
    frame.resize(60, 0);
    // The first frame, from inside, makes the flow known.
    let mut found = None;
    for interface in [1, interface] {
        let mut packet = Packet::new(&frame, 0).expect("a frame");
        packet.interface = interface;
        let (outcome, trace) = machine.run_rows(number, made, &mut packet).expect("no trap");
        found =
            Some((outcome, cycles(spec, &trace, frame.len() as u64, &vec![0; trace.helpers.len()]), trace));
    }
    let Some((outcome, cycles, trace)) = found else { return };
    let emission = 60u64.div_ceil(spec.transfer.width) + spec.transfer.emission;
    let mpps = spec.core.clock.hz() as f64 / cycles.core.max(emission) as f64 / 1e6;
    println!(
        "simple_firewall, {way}: result {}, {} rows, {} cycles: {mpps:.2} Mpps, paper {FIREWALL}, {:+.1} %",
        outcome.value,
        trace.rows,
        cycles.core,
        100.0 * (mpps / FIREWALL - 1.0)
    );
}
