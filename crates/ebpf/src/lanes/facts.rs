//! Knowledge of registers and of the stack before each operation.

use super::blocks::{Blocks, Node};
use super::operation::{Operand, Operation};
use crate::address;
use crate::helper::Helper;
use crate::op::{Alu, Op};

/// Bytes of the stack.
pub(super) const STACK: i64 = 512;
/// The largest distance that is kept. Loops end there.
const FAR: i64 = 1 << 20;

/// The knowledge of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    Any,
    Number(i64),
    Context,
    /// The packet's first byte plus a distance, if that is known.
    Packet(Option<i64>),
    PacketEnd,
    Stack(Option<i64>),
    /// The value of a map, or 0.
    Value,
}

/// Registers, and the bytes of the stack that may not be 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub registers: [Known; 11],
    pub written: [u64; 8],
}

/// A part of memory: its region, its first byte if known, and its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub region: Known,
    pub at: Option<i64>,
    pub bytes: i64,
}

impl Area {
    /// Whether two parts may have a common byte.
    pub fn meets(&self, other: &Area) -> bool {
        use Known::{Any, Context, Number, Packet, PacketEnd, Stack, Value};
        let same = match (self.region, other.region) {
            (Any | Number(_) | PacketEnd, _) | (_, Any | Number(_) | PacketEnd) => return true,
            (Packet(_), Packet(_)) | (Stack(_), Stack(_)) => true,
            (Value, Value) | (Context, Context) => return true,
            _ => false,
        };
        match (same, self.at, other.at) {
            (false, ..) => false,
            (true, Some(a), Some(b)) => a < b + other.bytes && b < a + self.bytes,
            _ => true,
        }
    }
}

fn near(at: i64) -> Option<i64> {
    (-FAR..FAR).contains(&at).then_some(at)
}

fn joined(a: Known, b: Known) -> Known {
    use Known::{Any, Packet, Stack};
    match (a, b) {
        _ if a == b => a,
        (Packet(_), Packet(_)) => Packet(None),
        (Stack(_), Stack(_)) => Stack(None),
        _ => Any,
    }
}

impl State {
    /// The core resets registers and stack before each packet.
    fn entry() -> State {
        let mut registers = [Known::Number(0); 11];
        registers[1] = Known::Context;
        registers[10] = Known::Stack(Some(0));
        State { registers, written: [0; 8] }
    }

    fn join(&mut self, other: &State) -> bool {
        let old = self.clone();
        for (own, other) in self.registers.iter_mut().zip(&other.registers) {
            *own = joined(*own, *other);
        }
        for (own, other) in self.written.iter_mut().zip(&other.written) {
            *own |= other;
        }
        *self != old
    }

    /// The knowledge of an operand.
    pub fn of(&self, operand: Operand) -> Known {
        match operand {
            Operand::Reg(register) => self.registers[usize::from(register)],
            Operand::Imm(number) => Known::Number(number),
        }
    }

    /// The memory at a distance from a register.
    pub fn area(&self, base: u8, at: i32, bytes: u8) -> Area {
        let region = self.registers[usize::from(base)];
        let from = match region {
            Known::Packet(from) | Known::Stack(from) => from,
            _ => None,
        };
        Area { region, at: from.and_then(|from| near(from + i64::from(at))), bytes: i64::from(bytes) }
    }

    /// The numbers of the stack's bytes in a part of it; none where it is not only of the stack.
    pub fn stack_bytes(&self, area: &Area) -> Option<std::ops::Range<usize>> {
        let (Known::Stack(_), Some(at)) = (area.region, area.at) else { return None };
        let first = usize::try_from(at + STACK).ok()?;
        let end = first + area.bytes as usize;
        (end <= STACK as usize).then_some(first..end)
    }

    /// Whether bytes of the stack are 0.
    pub fn is_zero(&self, mut bytes: std::ops::Range<usize>) -> bool {
        bytes.all(|at| self.written[at / 64] >> (at % 64) & 1 == 0)
    }

    fn write(&mut self, area: &Area, value: Known) {
        match (self.stack_bytes(area), area.region) {
            (Some(_), _) if value == Known::Number(0) => {}
            (Some(bytes), _) => bytes.for_each(|at| self.written[at / 64] |= 1 << (at % 64)),
            (None, Known::Packet(_) | Known::Value | Known::Context) => {}
            (None, _) => self.written = [u64::MAX; 8],
        }
    }

    /// Goes on behind an operation.
    pub fn pass(&mut self, operation: &Operation) {
        let result = match *operation {
            Operation::Alu { alu, wide, a, b, .. } => self.computed(alu, wide, a, b),
            Operation::Plain(step) => match step.op {
                Op::Constant => constant(step.imm),
                Op::Atomic32(_) | Op::Atomic64(_) | Op::StoreRelease(_) => {
                    self.write(&self.area(step.dst, step.to, 8), Known::Any);
                    Known::Any
                }
                _ => Known::Any,
            },
            Operation::Load { base, at, bytes: 4, signed: false, .. }
                if self.registers[usize::from(base)] == Known::Context =>
            {
                match at {
                    0 => Known::Packet(Some(0)),
                    4 => Known::PacketEnd,
                    8 => Known::Packet(None),
                    _ => Known::Any,
                }
            }
            Operation::Store { base, at, bytes, value } => {
                self.write(&self.area(base, at, bytes), self.of(value));
                return;
            }
            Operation::Helper(number) => self.called(number),
            _ => Known::Any,
        };
        if let Some(register) = operation.writes() {
            self.registers[usize::from(register)] = result;
        }
    }

    fn computed(&self, alu: Alu, wide: bool, a: u8, b: Operand) -> Known {
        let (first, second) = (self.registers[usize::from(a)], self.of(b));
        let moved = |at: Option<i64>, by: i64| at.and_then(|at| near(at.checked_add(by)?));
        match (alu, first, second) {
            (Alu::Mov, _, value) if wide => value,
            (Alu::Mov, _, Known::Number(number)) => Known::Number(i64::from(number as u32)),
            (Alu::Mov, ..) => Known::Any,
            (_, Known::Number(a), Known::Number(b)) if wide => {
                Known::Number(alu.of64(a as u64, b as u64) as i64)
            }
            (_, Known::Number(a), Known::Number(b)) => Known::Number(i64::from(alu.of32(a as u32, b as u32))),
            (Alu::Add, Known::Packet(at), Known::Number(by)) if wide => Known::Packet(moved(at, by)),
            (Alu::Add, Known::Number(by), Known::Packet(at)) if wide => Known::Packet(moved(at, by)),
            (Alu::Add, Known::Stack(at), Known::Number(by)) if wide => Known::Stack(moved(at, by)),
            (Alu::Sub, Known::Packet(at), Known::Number(by)) if wide => {
                Known::Packet(by.checked_neg().and_then(|by| moved(at, by)))
            }
            (Alu::Add | Alu::Sub, Known::Value, _) if wide => Known::Value,
            // A distance that is known at run time. Only addresses of the packet are no other region's.
            (Alu::Add, Known::Packet(_), Known::Any) if wide => Known::Packet(None),
            (Alu::Add, Known::Any, Known::Packet(_)) if wide => Known::Packet(None),
            _ => Known::Any,
        }
    }

    /// The result of a helper. Those that move the packet's ends make all addresses in it unknown.
    fn called(&mut self, number: u32) -> Known {
        let helper = Helper::of(number);
        if matches!(helper, Some(Helper::AdjustHead | Helper::AdjustTail | Helper::AdjustMeta)) {
            for register in &mut self.registers {
                if matches!(register, Known::Packet(_) | Known::PacketEnd) {
                    *register = Known::Any;
                }
            }
        }
        let keeps = matches!(
            helper,
            Some(
                Helper::MapLookup
                    | Helper::MapUpdate
                    | Helper::MapDelete
                    | Helper::Redirect
                    | Helper::RedirectMap
                    | Helper::CsumDiff
                    | Helper::AdjustHead
                    | Helper::AdjustTail
                    | Helper::KtimeGet
                    | Helper::Random
                    | Helper::Cpu
            )
        );
        if !keeps {
            self.written = [u64::MAX; 8];
        }
        match helper {
            Some(Helper::MapLookup) => Known::Value,
            _ => Known::Any,
        }
    }
}

fn constant(imm: i64) -> Known {
    let region = (imm as u64 >> 32) as u32;
    if region >= address::VALUES && (imm as u32) >= address::BASE { Known::Value } else { Known::Number(imm) }
}

/// The state before each node of each block; none where nothing leads.
pub(super) fn states(blocks: &Blocks) -> Vec<Vec<State>> {
    let mut begins: Vec<Option<State>> = vec![None; blocks.0.len()];
    begins[0] = Some(State::entry());
    let mut waiting = std::collections::BTreeSet::from([0]);
    while let Some(block) = waiting.pop_first() {
        let Some(mut state) = begins[block].clone() else { continue };
        blocks.0[block].nodes.iter().for_each(|node| state.pass(&node.operation));
        for next in blocks.next(block) {
            let is_new = match &mut begins[next] {
                Some(known) => known.join(&state),
                none => {
                    *none = Some(state.clone());
                    true
                }
            };
            if is_new {
                waiting.insert(next);
            }
        }
    }
    let within = |(nodes, begin): (&Vec<Node>, Option<State>)| {
        let mut state = begin.unwrap_or_else(State::entry);
        let each = nodes.iter().map(|node| {
            let before = state.clone();
            state.pass(&node.operation);
            before
        });
        each.collect()
    };
    blocks.0.iter().map(|block| &block.nodes).zip(begins).map(within).collect()
}
