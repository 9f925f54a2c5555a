//! Helpers that are a few instructions here, such as lookups in arrays, as in Linux.

use super::fact::{Known, Note, Place};
use super::ir::{Function, Ins, Kind, Value};
use super::{Options, array_of};
use crate::helper::Helper;
use crate::object::MapDefinition;
use crate::op::{Alu, Condition, Width};

/// The key of a lookup: a place in memory, or a number.
struct Key {
    value: Value,
    to: i32,
    in_memory: bool,
}

/// Turns lookups in arrays into instructions of their own.
pub(super) fn arrays(function: &mut Function, notes: &[Note], maps: &[MapDefinition], options: &Options) {
    for at in 0..function.ins.len() {
        let Some(map) = lookup(&function.ins[at], &notes[at], maps) else { continue };
        let key = key(function, notes, at);
        let stack = matches!(key.value, Value::Frame(_)) || !key.in_memory;
        if !options.misaligned && !stack {
            continue;
        }
        let definition = &maps[map as usize];
        let one = !is_per_cpu(definition) || options.cpus == 1;
        let (entries, number) = (definition.max_entries, !key.in_memory);
        let ins = Ins { dst: 0, a: key.value, b: Value::Const(0), to: key.to, ..function.ins[at] };
        let moved = |value| Ins { kind: Kind::Alu(Alu::Mov, true), a: value, b: value, ..ins };
        function.ins[at] = match key.value {
            Value::Const(at) if number && at as u32 >= entries => moved(Value::Const(0)),
            Value::Const(at) if number && one => {
                moved(Value::Memory(map, (at as u32).wrapping_mul(stride(definition) as u32)))
            }
            _ => Ins { kind: Kind::Array { map, entries, number }, ..ins },
        };
    }
}

/// Joins a lookup with the test of its result behind it.
pub(super) fn join_tests(function: &mut Function) {
    for at in 1..function.ins.len() {
        let (lookup, test) = (function.ins[at - 1], function.ins[at]);
        let Kind::Branch(condition @ (Condition::Equal | Condition::Unequal), true) = test.kind else {
            continue;
        };
        let array = matches!(lookup.kind, Kind::Array { .. });
        if array && !function.leads[at] && test.a == Value::Reg(0) && test.b == Value::Const(0) {
            function.ins[at].kind = Kind::Tested(condition);
        }
    }
}

/// The array that a step looks up.
fn lookup(ins: &Ins, note: &Note, maps: &[MapDefinition]) -> Option<u32> {
    if ins.kind != Kind::Helper(Helper::MapLookup as u32) {
        return None;
    }
    let Known::Is(Value::Map(number)) = note.arguments[0] else { return None };
    array_of(maps, number).then_some(number)
}

pub(super) fn is_per_cpu(map: &MapDefinition) -> bool {
    map.kind == crate::map::MapKind::PerCpuArray as u32
}

/// Bytes from one value of an array to the next.
pub(super) fn stride(map: &MapDefinition) -> i64 {
    u64::from(map.value_size).next_multiple_of(8) as i64
}

/// The key of a lookup: the register or the constant that was stored in it last, if that is known.
///
/// It removes steps for arguments that only the call would read.
fn key(function: &mut Function, notes: &[Note], at: usize) -> Key {
    let memory = |value, to| Key { value, to, in_memory: true };
    let Known::Is(Value::Frame(place)) = notes[at].arguments[1] else { return memory(Value::Reg(2), 0) };
    let unknown = memory(Value::Frame(place), 0);
    let (mut written, mut read) = (0u16, 0u16);
    for back in (0..at).rev() {
        if function.leads[back + 1] {
            break;
        }
        let (ins, note) = (&function.ins[back], &notes[back]);
        let bit = 1 << ins.dst;
        if matches!(ins.kind, Kind::Alu(..)) && ins.dst < 6 && read & bit == 0 {
            function.ins[back].kind = Kind::Nothing;
            continue;
        }
        match ins.kind {
            Kind::Store(width, _) => match ins.a {
                Value::Frame(base) => {
                    let begin = base + ins.to;
                    if begin == place && matches!(width, Width::B4 | Width::B8) {
                        return stored(ins, note, written).unwrap_or(unknown);
                    }
                    if begin < place + 4 && place < begin + width.bytes() as i32 {
                        break;
                    }
                }
                _ if matches!(note.place, Place::Packet | Place::Value | Place::Present) => {}
                _ => break,
            },
            Kind::Atomic(..) => break,
            kind if kind.changes_as_a_call() => break,
            _ => {
                written |= bit;
                read &= !bit;
            }
        }
        for value in [ins.a, ins.b] {
            read |= if let Value::Reg(register) = value { 1 << register } else { 0 };
        }
    }
    unknown
}

/// The value of a store, where its register still has it.
fn stored(ins: &Ins, note: &Note, written: u16) -> Option<Key> {
    let number = |value| Some(Key { value, to: 0, in_memory: false });
    match (note.number, ins.b) {
        (Some(constant), _) => number(Value::Const(i64::from(constant as u32))),
        // The result is in r0 before the key is read last.
        (None, Value::Reg(register)) if register != 0 && written & (1 << register) == 0 => number(ins.b),
        _ => None,
    }
}

/// Whether a helper is a few instructions here.
pub(super) fn is_inline(number: u32) -> bool {
    matches!(Helper::of(number), Some(Helper::Cpu | Helper::TailCall))
}
