//! The runtime's maps against those of the interpreter, on random operations.

use crate::toolchain::{Cores, linked};
use nicety_ebpf::asm::*;
use nicety_ebpf::card::{CardValues, Layout, Symbols, assembly};
use nicety_ebpf::{
    Errno, Helper, Instruction, Limits, Linked, Machine, MapDefinition, MapKind, Object, Packet,
};
use nicety_xdp::{EXCHANGE, Loaded};
use std::sync::OnceLock;

const CPUS: u32 = 3;
/// Bytes in front of key and value in a packet.
const BEFORE: usize = 14;

/// A map of each kind with operations of programs: sizes of key and value, entries, flags.
const MAPS: [(MapKind, u32, u32, u32, u32); 20] = [
    (MapKind::Array, 4, 8, 5, 0),
    (MapKind::Array, 4, 3, 5, 0),
    (MapKind::PerCpuArray, 4, 12, 5, 0),
    (MapKind::Hash, 4, 8, 6, 0),
    (MapKind::Hash, 7, 5, 6, 0),
    (MapKind::Hash, 16, 8, 16, 1),
    (MapKind::PerCpuHash, 8, 12, 6, 0),
    (MapKind::LruHash, 4, 8, 4, 0),
    (MapKind::LruHash, 4, 8, 13, 0),
    (MapKind::LruHash, 6, 4, 40, 0),
    (MapKind::LruHash, 4, 8, 12, 2),
    (MapKind::LruPerCpuHash, 4, 8, 9, 0),
    (MapKind::LruPerCpuHash, 4, 4, 9, 2),
    (MapKind::Lpm, 8, 8, 7, 1),
    (MapKind::Lpm, 6, 4, 7, 1),
    (MapKind::Lpm, 13, 8, 7, 1),
    (MapKind::Queue, 0, 6, 4, 0),
    (MapKind::Stack, 0, 8, 4, 0),
    (MapKind::Bloom, 0, 4, 20, 0),
    (MapKind::Bloom, 0, 21, 3, 0),
];

fn object() -> Object {
    let mut object = Object::default();
    object.maps = MAPS
        .iter()
        .map(|&(kind, key_size, value_size, max_entries, flags)| MapDefinition {
            name: kind.name().to_owned(),
            kind: kind as u32,
            key_size,
            value_size,
            max_entries,
            flags,
            ..MapDefinition::default()
        })
        .collect();
    object
}

/// The maps with the runtime.
fn program(cores: Cores) -> &'static [u8] {
    static PROGRAMS: [OnceLock<Vec<u8>>; 2] = [OnceLock::new(), OnceLock::new()];
    PROGRAMS[cores as usize].get_or_init(|| {
        let object = object();
        let numbers: Vec<usize> = (0..object.maps.len()).collect();
        let card = CardValues { cpus: CPUS, ..CardValues::default() };
        let maps = assembly(&object, &numbers, &card).unwrap();
        let program = "\t.text\n\t.globl nicety_xdp_program\nnicety_xdp_program:\n\tli a0, 2\n\tret\n";
        linked("maps", &format!("{program}{maps}"), cores)
    })
}

/// A generator of numbers below a limit.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % limit
    }
}

/// An operation of a program, with a key, a value and flags.
struct Operation {
    helper: Helper,
    cpu: u32,
    key: Vec<u8>,
    value: Vec<u8>,
    flags: u32,
}

fn operation(random: &mut Random, definition: &MapDefinition, kind: MapKind) -> Operation {
    let helpers: &[Helper] = match kind {
        MapKind::Queue | MapKind::Stack => {
            &[Helper::MapPush, Helper::MapPush, Helper::MapPop, Helper::MapPeek]
        }
        MapKind::Bloom => &[Helper::MapPush, Helper::MapPeek, Helper::MapPeek],
        MapKind::Array | MapKind::PerCpuArray => &[Helper::MapLookup, Helper::MapUpdate],
        _ => &[Helper::MapLookup, Helper::MapUpdate, Helper::MapUpdate, Helper::MapDelete],
    };
    let helper = helpers[random.below(helpers.len() as u32) as usize];
    let mut key = vec![0; definition.key_size as usize];
    if kind == MapKind::Lpm {
        let bits = 8 * (definition.key_size - 4);
        key[..4].copy_from_slice(&random.below(bits + 2).to_ne_bytes());
        // Few different bytes, so that prefixes meet.
        key[4..].iter_mut().for_each(|byte| *byte = [0, 0x80, 0xc0, 0xff][random.below(4) as usize]);
    } else if !key.is_empty() {
        key[0] = random.below(2 * definition.max_entries + 2) as u8;
    }
    let values = if kind == MapKind::Bloom { 3 } else { 256 };
    let value: Vec<u8> = (0..definition.value_size).map(|_| random.below(values) as u8).collect();
    let flags = [0, 0, 0, 1, 2, 3, 4, 8][random.below(8) as usize];
    Operation { helper, cpu: random.below(CPUS), key, value, flags }
}

/// A program that does an operation on bytes of its packet. A lookup returns 0, or 256 more than the value's first byte; a pop or a
/// peek leaves the value in the packet.
fn slots(number: u32, operation: &Operation) -> Vec<Instruction> {
    let (key, value) = (BEFORE as i32, (BEFORE + operation.key.len()) as i32);
    let second = if operation.key.is_empty() { value } else { key };
    let mut slots = vec![load(W, 6, 1, 0), mov(2, 6), alu64_imm(ADD, 2, second)];
    slots.extend(map(1, number));
    match operation.helper {
        Helper::MapUpdate => {
            slots.extend([mov(3, 6), alu64_imm(ADD, 3, value), mov_imm(4, operation.flags as i32)]);
        }
        _ => slots.push(mov_imm(3, operation.flags as i32)),
    }
    slots.push(call(operation.helper));
    if operation.helper == Helper::MapLookup {
        slots.extend([jump_imm(JEQ, 0, 0, 2), load(B, 0, 0, 0), alu64_imm(OR, 0, 256)]);
    }
    slots.push(exit());
    slots
}

fn interpreted(machine: &mut Machine, number: u32, operation: &Operation) -> (i32, Vec<u8>) {
    let mut bytes = vec![0; BEFORE];
    bytes.extend(&operation.key);
    bytes.extend(&operation.value);
    bytes.resize(bytes.len().max(64), 0);
    let mut packet = Packet::new(&bytes, 0).unwrap();
    machine.cpu = operation.cpu;
    let program = machine.add_program(Linked::of_slots("test", slots(number, operation)).unwrap());
    let result = machine.run(program, &mut packet).unwrap().value as i32;
    let at = BEFORE + operation.key.len();
    (result, packet.bytes()[at..at + operation.value.len()].to_vec())
}

fn on_card(loaded: &mut Loaded, cores: Cores, map: &str, operation: &Operation) -> (i32, Vec<u8>) {
    let address = loaded.address(map).unwrap();
    // Keys of odd sizes bring odd addresses of values.
    let mut exchange = operation.key.clone();
    exchange.extend(&operation.value);
    let value = EXCHANGE + operation.key.len() as u32;
    let flags = operation.flags;
    let arguments = match operation.helper {
        Helper::MapUpdate => vec![address, EXCHANGE, value, flags],
        Helper::MapLookup | Helper::MapDelete => vec![address, EXCHANGE],
        _ => vec![address, value, flags],
    };
    // On RV32 an argument is a pair of registers.
    let arguments: Vec<u32> = match cores {
        Cores::Rv32 | Cores::Nfp => arguments.iter().flat_map(|&argument| [argument, 0]).collect(),
        Cores::Rv64 => arguments,
    };
    loaded.hart = operation.cpu;
    let function = format!("nicety_{}", operation.helper.name());
    let (result, exchange) = loaded.call_with(&function, &arguments, exchange).unwrap();
    let behind = exchange[operation.key.len()..].to_vec();
    let result = match operation.helper {
        Helper::MapLookup if result != 0 => 256 + i32::from(loaded.byte(result).unwrap()),
        _ => result as i32,
    };
    (result, behind)
}

fn compare(cores: Cores, number: usize, seed: u64, count: u32) {
    let object = object();
    let definition = &object.maps[number];
    let kind = MAPS[number].0;
    let symbol = &Symbols::of(&object).names[number];
    let mut machine = Machine::empty(Limits { cpus: CPUS, ..Limits::default() });
    for map in &object.maps {
        machine.add_map(map).unwrap();
    }
    let mut loaded = Loaded::new(program(cores), &cores.core()).unwrap();
    let layout = Layout::of(definition, CPUS, None).unwrap();
    let mut random = Random(seed);
    let mut full = 0;
    for step in 0..count {
        let operation = operation(&mut random, definition, kind);
        let expected = interpreted(&mut machine, number as u32, &operation);
        let found = on_card(&mut loaded, cores, symbol, &operation);
        let Operation { helper, cpu, key, flags, .. } = &operation;
        assert_eq!(
            found, expected,
            "{symbol}, seed {seed}, step {step}: {helper:?} on {cpu} of {key:?}, {flags}"
        );
        full += u32::from(expected.0 == -(Errno::E2BIG.0 as i32) || expected.0 == -(Errno::ENOSPC.0 as i32));
    }
    let mut expected = machine.maps[number].items();
    let mut found = loaded.entries(symbol, &layout).unwrap();
    // Hashes have an order of their own.
    if !matches!(kind, MapKind::Lpm | MapKind::Queue | MapKind::Stack) {
        expected.sort_by(|a, b| a.key.cmp(&b.key));
        found.sort_by(|a, b| a.key.cmp(&b.key));
    }
    assert_eq!(found, expected, "{symbol}, seed {seed}");
    if !matches!(kind, MapKind::Array | MapKind::PerCpuArray) {
        assert_eq!(loaded.full(symbol, &layout).unwrap(), full, "{symbol}: counted errors of a full map");
    }
}

#[test]
fn maps_are_as_those_of_the_interpreter() {
    for cores in Cores::ALL {
        for number in 0..MAPS.len() {
            (0..12).for_each(|seed| compare(cores, number, seed, 300));
        }
    }
}
