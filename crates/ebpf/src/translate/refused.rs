//! Accesses that Linux's verifier refuses for certain.
//!
//! The pass assumes the best wherever it does not know. A value that differs between two ways is allowed. One comparison with
//! `data_end` on any way counts for all ways, and so does one comparison with 0. So the pass refuses no program that Linux
//! takes. Linux may refuse a program that passes.

use super::ir::{self, Function, Ins, Kind, Value};
use super::refuse;
use crate::error::ObjectError;
use crate::helper::Helper;
use crate::map::{Flags, MapKind};
use crate::object::{Attach, Linked, MapDefinition, unset_pointers};
use crate::op::{Alu, Atomic};

/// Bytes of a function's stack.
const STACK: i64 = super::STACK as i64;
/// The largest distance that is kept. Loops end there.
const FAR: i64 = 1 << 20;

/// A distance, or none where it is known at run time.
type Distance = Option<i64>;

/// The value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Nothing was written to it.
    Unset,
    /// Anything: what the pass does not follow.
    Any,
    Number(Distance),
    Context(Distance),
    Packet(Distance),
    PacketEnd,
    Stack(Distance),
    /// A value of `size` bytes, at a distance. `lookup` is the step of a result that may still be 0.
    Bytes {
        size: Distance,
        at: Distance,
        constant: bool,
        lookup: Option<usize>,
    },
}

/// The registers, and the bytes of the packet that a comparison has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    registers: [Known; 11],
    /// Bytes behind `data`; none without a comparison.
    compared: Option<i64>,
}

fn joined(a: Known, b: Known) -> Known {
    use Known::{Any, Bytes, Context, Number, Packet, Stack, Unset};
    let distance = |a: Distance, b: Distance| if a == b { a } else { None };
    match (a, b) {
        _ if a == b => a,
        (Unset, other) | (other, Unset) => other,
        (Number(a), Number(b)) => Number(distance(a, b)),
        (Context(a), Context(b)) => Context(distance(a, b)),
        (Packet(a), Packet(b)) => Packet(distance(a, b)),
        (Stack(a), Stack(b)) => Stack(distance(a, b)),
        (
            Bytes { size, at, constant, lookup },
            Bytes { size: other, at: far, constant: fixed, lookup: second },
        ) => Bytes {
            size: distance(size, other),
            at: distance(at, far),
            constant: constant && fixed,
            lookup: lookup.and(second),
        },
        _ => Any,
    }
}

impl State {
    fn entry(function: &Function) -> State {
        use Known::{Any, Context, Stack, Unset};
        let mut registers = [Unset; 11];
        registers[1] = Context(Some(0));
        if !function.is_main {
            registers[1..=5].fill(Any);
        }
        registers[10] = Stack(Some(0));
        // A function may be called where its caller has compared.
        State { registers, compared: if function.is_main { None } else { Some(FAR) } }
    }

    fn join(&self, other: &State) -> State {
        let registers = std::array::from_fn(|at| joined(self.registers[at], other.registers[at]));
        State { registers, compared: self.compared.max(other.compared) }
    }

    fn of(&self, value: Value, maps: &[MapDefinition]) -> Known {
        match value {
            Value::Reg(register) => self.registers[register as usize],
            Value::Const(number) => Known::Number(Some(number)),
            Value::Data(map, at) => Known::Bytes {
                size: Some(maps[map as usize].value_size.into()),
                at: Some(at.into()),
                constant: maps[map as usize].flags & Flags::READ_ONLY_PROGRAM != 0,
                lookup: None,
            },
            Value::Frame(at) => Known::Stack(Some(at.into())),
            Value::Map(_) | Value::Memory(..) | Value::Function(_) => Known::Any,
        }
    }

    /// Forgets that lookups may have found nothing.
    fn found(&mut self, step: usize) {
        for register in &mut self.registers {
            if let Known::Bytes { lookup, .. } = register
                && *lookup == Some(step)
            {
                *lookup = None;
            }
        }
    }

    fn compare(&mut self, a: Known, b: Known) {
        use Known::{Any, Bytes, Packet, PacketEnd};
        for side in [a, b] {
            if let Bytes { lookup: Some(step), .. } = side {
                self.found(step);
            }
        }
        let bytes = match (a, b) {
            (Packet(at), PacketEnd) | (PacketEnd, Packet(at)) => at.map_or(FAR, |at| at + 1),
            (Any, PacketEnd | Packet(_) | Any) | (PacketEnd | Packet(_), Any) => FAR,
            _ => return,
        };
        self.compared = self.compared.max(Some(bytes));
    }
}

fn near(at: i64) -> Distance {
    (-FAR..FAR).contains(&at).then_some(at)
}

/// The sum of a value and a number.
fn moved(value: Known, by: Distance) -> Known {
    use Known::{Any, Bytes, Context, Number, Packet, PacketEnd, Stack, Unset};
    let sum = |at: Distance| at.zip(by).and_then(|(at, by)| near(at.checked_add(by)?));
    match value {
        Number(at) => Number(at.zip(by).and_then(|(at, by)| at.checked_add(by))),
        Context(at) => Context(sum(at)),
        Packet(at) => Packet(sum(at)),
        Stack(at) => Stack(sum(at)),
        Bytes { size, at, constant, lookup } => Bytes { size, at: sum(at), constant, lookup },
        Any | PacketEnd | Unset => Any,
    }
}

fn computed(alu: Alu, wide: bool, a: Known, b: Known) -> Known {
    use Known::{Any, Number};
    match (alu, a, b) {
        (Alu::Mov, _, value) if wide => value,
        (Alu::Mov, _, Number(number)) => Number(number.map(|number| i64::from(number as u32))),
        (Alu::Add, value, Number(by)) if wide => moved(value, by),
        (Alu::Add, Number(by), value) if wide => moved(value, by),
        (Alu::Sub, value, Number(by)) if wide => moved(value, by.and_then(i64::checked_neg)),
        (_, Number(_), Number(_)) => Number(None),
        _ => Any,
    }
}

/// The reason why Linux refuses an access; none where it may take it.
fn problem(state: &State, base: Known, to: i64, bytes: i64, write: bool, device: bool) -> Option<String> {
    let does = if write { "writes" } else { "reads" };
    let text = |place: &str| Some(format!("it {does} {bytes} bytes {place}"));
    match base {
        Known::Unset => text("at a register without a value"),
        Known::Number(_) => text("at a number, not at a pointer"),
        Known::PacketEnd => text("at data_end"),
        Known::Context(_) if write => text("of the context, which programs may only read"),
        Known::Context(Some(at)) => {
            let at = at + to;
            let known = (0..=if device { 20 } else { 16 }).contains(&at) && at % 4 == 0 && bytes == 4;
            if known {
                None
            } else {
                text(&format!("at byte {at} of the context, not at one of its words of 4 bytes"))
            }
        }
        Known::Stack(Some(at)) => {
            let at = at + to;
            let inside = at >= -STACK && at + bytes <= 0;
            if inside { None } else { text(&format!("at r10{at:+}, outside the stack of 512 bytes")) }
        }
        Known::Packet(at) => match (state.compared, at) {
            (None, _) => text("of the packet without a comparison with data_end"),
            (_, Some(at)) if at + to < 0 => text("before the packet"),
            (Some(compared), Some(at)) if at + to + bytes > compared => text(&format!(
                "at byte {} of the packet, but data_end was compared with fewer bytes",
                at + to
            )),
            _ => None,
        },
        Known::Bytes { lookup: Some(_), .. } => text("at a lookup's result, which may be 0"),
        Known::Bytes { constant: true, .. } if write => text("of constants"),
        Known::Bytes { size: Some(size), at: Some(at), .. } if at + to < 0 || at + to + bytes > size => {
            text(&format!("at byte {} of a memory of {size} bytes", at + to))
        }
        _ => None,
    }
}

/// A pass over one function.
struct Pass<'p> {
    linked: &'p Linked,
    maps: &'p [MapDefinition],
    function: &'p Function,
}

impl Pass<'_> {
    /// The access of a step: its bytes, and whether it writes.
    fn access(ins: &Ins) -> Option<(i64, bool)> {
        match ins.kind {
            Kind::Load(width, ..) => Some((width.bytes() as i64, false)),
            Kind::Store(width, _) => Some((width.bytes() as i64, true)),
            Kind::Atomic(_, wide) => Some((if wide { 8 } else { 4 }, true)),
            _ => None,
        }
    }

    /// Refuses a step.
    fn check(&self, state: &State, at: usize) -> Result<(), ObjectError> {
        let ins = &self.function.ins[at];
        let refused = |problem: &str| {
            let advice = "Linux's verifier refuses it; correct it, or run it with checks: --unverified";
            refuse(self.linked, self.function.first + at, problem, advice)
        };
        let unset = |value: Value| matches!(state.of(value, self.maps), Known::Unset);
        let (a, b) = match ins.kind {
            Kind::Alu(Alu::Mov, _) | Kind::Extend(..) => (false, unset(ins.b)),
            Kind::Alu(..) | Kind::Branch(..) | Kind::Store(..) | Kind::Atomic(..) => {
                (unset(ins.a), unset(ins.b))
            }
            Kind::Neg(_) | Kind::Truncate(_) | Kind::Swap(_) | Kind::Load(..) => (unset(ins.a), false),
            Kind::Exit => (self.function.is_main && unset(ins.a), false),
            _ => (false, false),
        };
        if a || b {
            return refused("it reads a register without a value");
        }
        if let Kind::Helper(number) = ins.kind
            && Helper::of(number).is_some_and(Helper::changes_map)
            && let Some(map) = self.map_argument(at)
            && map.flags & Flags::READ_ONLY_PROGRAM != 0
        {
            return refused(&format!("it changes map {}, which programs may only read", map.name));
        }
        let Some((bytes, write)) = Pass::access(ins) else { return Ok(()) };
        let device = self.linked.attach == Attach::DeviceMap;
        let base = state.of(ins.a, self.maps);
        match problem(state, base, ins.to.into(), bytes, write, device) {
            Some(problem) => match (base, unset_pointers(self.maps)) {
                (Known::Number(_), Some(advice)) => refused(&format!("{problem}; {advice}")),
                _ => refused(&problem),
            },
            None => Ok(()),
        }
    }

    /// The result of a helper.
    fn returned(&self, state: &State, number: u32, step: usize) -> Known {
        let fixed = |map: &MapDefinition| map.flags & Flags::READ_ONLY_PROGRAM != 0;
        let bytes = |size, constant| Known::Bytes { size, at: Some(0), constant, lookup: Some(step) };
        match Helper::of(number) {
            Some(Helper::MapLookup | Helper::MapLookupPercpu) => match self.map_argument(step) {
                Some(map) => match MapKind::of(map.kind) {
                    // The newest Linux knows that a constant key of an array has a value.
                    Some(MapKind::Array | MapKind::PerCpuArray) => Known::Bytes {
                        size: Some(map.value_size.into()),
                        at: Some(0),
                        constant: fixed(map),
                        lookup: None,
                    },
                    Some(
                        MapKind::Hash
                        | MapKind::PerCpuHash
                        | MapKind::LruHash
                        | MapKind::LruPerCpuHash
                        | MapKind::Lpm,
                    ) => bytes(Some(map.value_size.into()), fixed(map)),
                    _ => Known::Any,
                },
                None => Known::Any,
            },
            Some(Helper::RingbufReserve) => match state.registers[2] {
                Known::Number(size) => bytes(size, false),
                _ => Known::Any,
            },
            Some(_) => Known::Number(None),
            None => Known::Any,
        }
    }

    /// The map in r1, if the last write of r1 in front of a step is a map, and no jump comes between them.
    fn map_argument(&self, step: usize) -> Option<&MapDefinition> {
        for at in (0..step).rev() {
            if self.function.leads[at + 1] {
                return None;
            }
            let ins = &self.function.ins[at];
            let writes = matches!(ins.kind, Kind::Helper(_) | Kind::Call) || ins.dst == 1;
            match (ins.kind, ins.b) {
                (Kind::Alu(Alu::Mov, true), Value::Map(map)) if ins.dst == 1 => {
                    return self.maps.get(map as usize);
                }
                (Kind::Store(..), _) => {}
                _ if writes => return None,
                _ => {}
            }
        }
        None
    }

    /// The state behind a step.
    fn after(&self, state: &State, at: usize) -> State {
        let ins = &self.function.ins[at];
        let mut next = *state;
        let (a, b) = (state.of(ins.a, self.maps), state.of(ins.b, self.maps));
        let mut set = |register: u8, known: Known| next.registers[register as usize] = known;
        match ins.kind {
            Kind::Alu(alu, wide) => set(ins.dst, computed(alu, wide, a, b)),
            Kind::Neg(_) | Kind::Truncate(_) | Kind::Swap(_) if matches!(a, Known::Number(_)) => {
                set(ins.dst, Known::Number(None));
            }
            Kind::Extend(..) if matches!(b, Known::Number(_)) => set(ins.dst, Known::Number(None)),
            Kind::Neg(_) | Kind::Truncate(_) | Kind::Swap(_) | Kind::Extend(..) => set(ins.dst, Known::Any),
            Kind::Load(..) => set(ins.dst, loaded(a, ins.to)),
            Kind::Atomic(atomic, _) => match (atomic, ins.b) {
                (Atomic::CompareExchange, _) => set(0, Known::Any),
                (_, Value::Reg(register)) if atomic.fetches() => set(register, Known::Any),
                _ => {}
            },
            Kind::Helper(number) => {
                let result = self.returned(state, number, at);
                next.registers[1..=5].fill(Known::Unset);
                next.registers[0] = result;
                if matches!(
                    Helper::of(number),
                    Some(Helper::AdjustHead | Helper::AdjustMeta | Helper::AdjustTail | Helper::StoreBytes)
                ) {
                    next = moved_packet(&next);
                }
            }
            Kind::Call => {
                next.registers[1..=5].fill(Known::Unset);
                next.registers[0] = Known::Any;
                // The function may have compared, or moved the packet.
                next.compared = Some(FAR);
            }
            Kind::Branch(..) => next.compare(a, b),
            _ => {}
        }
        next
    }
}

/// The state behind a helper that moves the packet: its pointers are no longer followed.
fn moved_packet(state: &State) -> State {
    let registers = state.registers.map(|known| match known {
        Known::Packet(_) | Known::PacketEnd => Known::Any,
        other => other,
    });
    State { registers, compared: None }
}

/// A loaded value.
fn loaded(base: Known, to: i32) -> Known {
    match base {
        Known::Context(Some(at)) => match at + i64::from(to) {
            0 => Known::Packet(Some(0)),
            4 => Known::PacketEnd,
            12 | 16 | 20 => Known::Number(None),
            _ => Known::Any,
        },
        Known::Packet(_) | Known::Bytes { .. } => Known::Number(None),
        _ => Known::Any,
    }
}

fn check_function(pass: &Pass<'_>) -> Result<(), ObjectError> {
    let function = pass.function;
    let blocks = function.blocks();
    let number = |first: usize| blocks.partition_point(|block| block.0 < first);
    let mut states: Vec<Option<State>> = vec![None; blocks.len()];
    states[0] = Some(State::entry(function));
    let mut waiting = std::collections::BTreeSet::from([0]);
    while let Some(block) = waiting.pop_first() {
        let Some(mut now) = states[block] else { continue };
        let (first, last) = blocks[block];
        for at in first..=last {
            now = pass.after(&now, at);
        }
        for next in function.next(last) {
            let target = number(next);
            let joined = states[target].map_or(now, |known| known.join(&now));
            if states[target] != Some(joined) {
                states[target] = Some(joined);
                waiting.insert(target);
            }
        }
    }
    for ((first, last), state) in blocks.iter().zip(&states) {
        let Some(mut now) = *state else { continue };
        for at in *first..=*last {
            pass.check(&now, at)?;
            now = pass.after(&now, at);
        }
    }
    Ok(())
}

/// Refuses a linked program with an access that Linux's verifier refuses for certain.
///
/// # Errors
/// There is one: its line, and the reason.
pub fn check_verified(linked: &Linked, maps: &[MapDefinition]) -> Result<(), ObjectError> {
    for function in &ir::functions(linked)? {
        check_function(&Pass { linked, maps, function })?;
    }
    Ok(())
}
