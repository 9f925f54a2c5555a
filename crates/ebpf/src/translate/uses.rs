//! The words of maps' values that a program reads, and those that it adds to.
//!
//! A network flow processor's memories add to a word in their own order of bytes. So Linux's driver converts counters, and no other
//! words. It keeps one use for each word, and refuses a program with two (`nfp_bpf_map_mark_used_one`).

use super::ir::{Function, Ins, Kind, Value};
use super::refuse;
use crate::error::ObjectError;
use crate::helper::Helper;
use crate::object::{Linked, MapDefinition};
use crate::op::{Alu, Condition};
use std::collections::{BTreeMap, BTreeSet};

/// The known contents of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Unknown,
    Map(u32),
    /// A byte of a map's value.
    Byte(u32, i32),
    /// A byte of a map's value that depends on data.
    Somewhere(u32),
    Number(i64),
    /// A number that depends on data.
    Data,
}

type Registers = [Held; 11];

/// The use of each word so far, by map and word.
#[derive(Debug, Default)]
pub(super) struct Uses(BTreeMap<(u32, i32), Use>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Read,
    Added,
}

impl Uses {
    /// Refuses a word with two uses, and a place in a value that is not known.
    pub(super) fn check(
        &mut self,
        linked: &Linked,
        maps: &[MapDefinition],
        function: &Function,
    ) -> Result<(), ObjectError> {
        let blocks = function.blocks();
        for ((first, last), registers) in blocks.iter().zip(at_blocks(function)) {
            let Some(mut now) = registers else { continue };
            for at in *first..=*last {
                let ins = &function.ins[at];
                self.check_step(linked, maps, function.first + at, ins, held(&now, ins.a))?;
                now = after(&now, ins);
            }
        }
        Ok(())
    }

    fn check_step(
        &mut self,
        linked: &Linked,
        maps: &[MapDefinition],
        at: usize,
        ins: &Ins,
        pointer: Held,
    ) -> Result<(), ObjectError> {
        let (own, bytes) = match ins.kind {
            Kind::Load(width, ..) => (Use::Read, width.bytes() as i32),
            Kind::Atomic(_, wide) => (Use::Added, if wide { 8 } else { 4 }),
            _ => return Ok(()),
        };
        let name = |map: u32| maps.get(map as usize).map_or("?", |map| map.name.as_str());
        match pointer {
            Held::Somewhere(map) => {
                let problem = format!(
                    "an access to a value of {} at an offset that depends on data (nfp_bpf_map_mark_used)",
                    name(map)
                );
                refuse(linked, at, &problem, "use a member, or an entry for each offset")
            }
            Held::Byte(map, from) => {
                let from = from + ins.to;
                for word in from / 4..=(from + bytes - 1) / 4 {
                    if *self.0.entry((map, word)).or_insert(own) != own {
                        let problem = format!(
                            "bytes {} to {} of a value of {} are both read and added to (nfp_bpf_map_mark_used_one)",
                            4 * word,
                            4 * word + 3,
                            name(map)
                        );
                        return refuse(
                            linked,
                            at,
                            &problem,
                            "keep counters apart from what the program reads",
                        );
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn held(registers: &Registers, value: Value) -> Held {
    match value {
        Value::Reg(register) => registers[register as usize],
        Value::Const(number) => Held::Number(number),
        Value::Map(map) => Held::Map(map),
        _ => Held::Unknown,
    }
}

/// The registers at the begin of each block; none where it is never reached.
fn at_blocks(function: &Function) -> Vec<Option<Registers>> {
    let blocks = function.blocks();
    let mut found: Vec<Option<Registers>> = vec![None; blocks.len()];
    found[0] = Some([Held::Unknown; 11]);
    let mut waiting = BTreeSet::from([0]);
    while let Some(block) = waiting.pop_first() {
        let Some(mut now) = found[block] else { continue };
        let (first, last) = blocks[block];
        for ins in &function.ins[first..=last] {
            now = after(&now, ins);
        }
        for next in function.next(last) {
            let target = blocks.partition_point(|&(first, _)| first < next);
            let joined = match found[target] {
                None => now,
                Some(known) => {
                    std::array::from_fn(|at| if known[at] == now[at] { now[at] } else { Held::Unknown })
                }
            };
            if found[target] != Some(joined) {
                found[target] = Some(joined);
                waiting.insert(target);
            }
        }
    }
    found
}

fn after(registers: &Registers, ins: &Ins) -> Registers {
    let mut next = *registers;
    let own = ins.dst as usize;
    match ins.kind {
        Kind::Alu(alu, wide) => {
            next[own] = computed(alu, wide, held(registers, ins.a), held(registers, ins.b))
        }
        Kind::Neg(_) | Kind::Extend(..) | Kind::Truncate(_) | Kind::Swap(_) => next[own] = Held::Unknown,
        // A number on the stack may be a constant that was kept there.
        Kind::Load(..) if matches!(ins.a, Value::Reg(1..10)) => next[own] = Held::Data,
        Kind::Load(..) => next[own] = Held::Unknown,
        Kind::Helper(number) => {
            let result = match (Helper::of(number), registers[1]) {
                (Some(Helper::MapLookup), Held::Map(map)) => Held::Byte(map, 0),
                (Some(Helper::Random), _) => Held::Data,
                _ => Held::Unknown,
            };
            next[..6].fill(Held::Unknown);
            next[0] = result;
        }
        kind if kind.changes_as_a_call() => next[..6].fill(Held::Unknown),
        // Behind a comparison for equality, a number of data may be a constant.
        Kind::Branch(Condition::Equal | Condition::Unequal, _) => {
            for value in [ins.a, ins.b] {
                if let (Value::Reg(register), Held::Data) = (value, held(registers, value)) {
                    next[register as usize] = Held::Unknown;
                }
            }
        }
        _ => {}
    }
    next
}

fn computed(alu: Alu, wide: bool, a: Held, b: Held) -> Held {
    match (alu, a, b) {
        (Alu::Mov, _, b) if wide || matches!(b, Held::Number(0..=0x7fff_ffff) | Held::Data) => b,
        (Alu::Add, Held::Byte(map, at), Held::Number(by))
        | (Alu::Add, Held::Number(by), Held::Byte(map, at)) => i32::try_from(by)
            .ok()
            .and_then(|by| at.checked_add(by))
            .map_or(Held::Unknown, |at| Held::Byte(map, at)),
        (Alu::Add, Held::Byte(map, _) | Held::Somewhere(map), Held::Data)
        | (Alu::Add, Held::Data, Held::Byte(map, _) | Held::Somewhere(map))
        | (Alu::Add, Held::Somewhere(map), Held::Number(_)) => Held::Somewhere(map),
        // A number of data and a constant; anding with 0 does not come from a compiler.
        (Alu::Mov, ..) => Held::Unknown,
        (_, Held::Data, Held::Data | Held::Number(_)) => Held::Data,
        _ => Held::Unknown,
    }
}
