//! Knowledge of registers before each step: constants, copies, pointers, and the largest number.

use super::bytes;
use super::fact::{ANY, Fact, Facts, Known, Note, PLACES, Place, REGISTERS, WORD, base, fits, operand};
use super::ir::{Function, Ins, Kind, Value};
use super::stack;
use crate::helper::Helper;
use crate::op::{Alu, Atomic, Condition, Width};

fn entry(function: &Function) -> Facts {
    let mut facts = [ANY; REGISTERS + PLACES];
    facts[10] = Fact::of(Value::Frame(0));
    if function.is_main {
        facts[1] = Fact::pointer(Place::Context);
    }
    facts
}

/// The facts at the begin of each block; none where it is never reached.
pub(super) fn at_blocks(function: &Function) -> Vec<Option<Facts>> {
    let blocks = function.blocks();
    let mut number = vec![usize::MAX; function.ins.len()];
    blocks.iter().enumerate().for_each(|(block, &(first, _))| number[first] = block);
    let mut facts: Vec<Option<Facts>> = vec![None; blocks.len()];
    let mut visits = vec![0u32; blocks.len()];
    facts[0] = Some(entry(function));
    let mut waiting = std::collections::BTreeSet::from([0]);
    while let Some(block) = waiting.pop_first() {
        let Some(mut now) = facts[block] else { continue };
        let (first, last) = blocks[block];
        for at in first..=last {
            now = after(&now, &function.ins[at]);
        }
        for (side, next) in function.next(last).enumerate() {
            let target = number[next];
            let arriving = refined(&now, &function.ins[last], side == 1);
            let joined = match &facts[target] {
                None => arriving,
                Some(known) => join(known, &arriving, visits[target] > 3),
            };
            if facts[target].as_ref() != Some(&joined) {
                facts[target] = Some(joined);
                visits[target] += 1;
                waiting.insert(target);
            }
        }
    }
    facts
}

/// The facts that both ways have in common. A loop's growing number ends at the limit of its width.
fn join(known: &Facts, arriving: &Facts, widen: bool) -> Facts {
    std::array::from_fn(|at| {
        let mut joined = known[at].joined(arriving[at]);
        if widen && joined.max > known[at].max {
            joined.max = if joined.max <= WORD { WORD } else { u64::MAX };
        }
        joined
    })
}

/// Facts behind a jump that compares with a constant.
fn refined(facts: &Facts, ins: &Ins, taken: bool) -> Facts {
    let mut refined = *facts;
    let (Kind::Branch(condition, wide), Value::Reg(register)) = (ins.kind, ins.a) else { return refined };
    let fact = &mut refined[register as usize];
    let limit = operand(facts, ins.b).max;
    let found = matches!((condition, taken), (Condition::Equal, false) | (Condition::Unequal, true));
    if wide && found && limit == 0 && fact.place == Place::Value {
        fact.place = Place::Present;
    }
    // A 32-bit comparison says nothing of the upper half.
    if !wide && (fact.max > WORD || limit > WORD) {
        return refined;
    }
    let max = match (condition, taken) {
        (Condition::Below, true) | (Condition::AboveOrEqual, false) => limit.saturating_sub(1),
        (Condition::BelowOrEqual, true) | (Condition::Above, false) | (Condition::Equal, true) => limit,
        (Condition::Unequal, false) => limit,
        _ => return refined,
    };
    fact.max = fact.max.min(max);
    refined
}

/// The facts behind a step.
pub(super) fn after(facts: &Facts, ins: &Ins) -> Facts {
    let mut next = *facts;
    bytes::forget(&mut next, facts, ins);
    stack::change(&mut next, facts, ins);
    let set = |next: &mut Facts, register: u8, fact: Fact| {
        for other in next.iter_mut() {
            if other.known.is_of(register) {
                other.known = Known::Nothing;
            }
        }
        let own = fact.known.is_of(register);
        next[register as usize] = if own { Fact { known: Known::Nothing, ..fact } } else { fact };
    };
    match ins.kind {
        Kind::Alu(..)
        | Kind::Neg(_)
        | Kind::Extend(..)
        | Kind::Truncate(_)
        | Kind::Swap(_)
        | Kind::Load(..) => {
            set(&mut next, ins.dst, result(facts, ins));
        }
        Kind::Atomic(atomic, wide) => {
            let old = Fact::up_to(if wide { u64::MAX } else { WORD });
            match (atomic, ins.b) {
                (Atomic::CompareExchange, _) => set(&mut next, 0, old),
                (_, Value::Reg(src)) if atomic.fetches() => set(&mut next, src, old),
                _ => {}
            }
        }
        Kind::Helper(number) => {
            (1..=5).for_each(|register| set(&mut next, register, ANY));
            set(&mut next, 0, returned(number));
        }
        Kind::Array { entries, number, .. } => {
            let inside = number && operand(facts, ins.a).max < u64::from(entries);
            (1..=5).for_each(|register| set(&mut next, register, ANY));
            set(&mut next, 0, Fact::pointer(if inside { Place::Present } else { Place::Value }));
        }
        Kind::Hash { .. } => {
            (1..=5).for_each(|register| set(&mut next, register, ANY));
            set(&mut next, 0, Fact::pointer(Place::Value));
        }
        Kind::Sum { .. } => {
            (1..=5).for_each(|register| set(&mut next, register, ANY));
            set(&mut next, 0, returned(Helper::CsumDiff as u32));
        }
        Kind::Push(_) => {
            (1..=5).for_each(|register| set(&mut next, register, ANY));
            set(&mut next, 0, Fact::of(Value::Const(0)));
        }
        Kind::Call => (0..=5).for_each(|register| set(&mut next, register, ANY)),
        Kind::Nothing | Kind::Store(..) | Kind::Jump | Kind::Branch(..) | Kind::Tested(_) | Kind::Exit => {}
    }
    next
}

/// The result of a helper.
pub(super) fn returned(number: u32) -> Fact {
    match Helper::of(number) {
        Some(Helper::MapLookup | Helper::MapLookupPercpu | Helper::RingbufReserve) => {
            Fact::pointer(Place::Value)
        }
        Some(Helper::Random | Helper::Cpu | Helper::BuffLen) => Fact::up_to(WORD),
        // A folded sum.
        Some(Helper::CsumDiff) => Fact::up_to(0xffff),
        // A verdict.
        Some(Helper::Redirect | Helper::RedirectMap) => Fact::up_to(4),
        _ => ANY,
    }
}

/// The result of a step that writes `dst`.
pub(super) fn result(facts: &Facts, ins: &Ins) -> Fact {
    match found(facts, ins) {
        // No other number is as small.
        Fact {
            known: Known::Nothing | Known::Sum(..) | Known::Bytes { .. },
            max: 0,
            place: Place::Unknown,
        } => Fact::of(Value::Const(0)),
        fact => fact,
    }
}

fn found(facts: &Facts, ins: &Ins) -> Fact {
    let (a, b) = (operand(facts, ins.a), operand(facts, ins.b));
    let mask = |width: Width| width.truncated(u64::MAX);
    match ins.kind {
        Kind::Alu(Alu::Mov, true) => copied(ins.b, b),
        Kind::Alu(Alu::Mov, false) if b.max <= WORD => copied(ins.b, b),
        Kind::Alu(Alu::And, whole) if keeps_all(a, b, whole) => copied(ins.a, a),
        Kind::Alu(Alu::Add | Alu::Or | Alu::Xor, false) if b.constant() == Some(0) && a.max <= WORD => {
            copied(ins.a, a)
        }
        Kind::Alu(alu, whole) => {
            let fact = if whole { wide(alu, ins, a, b) } else { narrow(alu, a, b) };
            match fact.known {
                Known::Nothing => Fact { known: bytes::joined(facts, ins, alu, whole), ..fact },
                _ => fact,
            }
        }
        Kind::Neg(wide) => match (a.constant(), wide) {
            (Some(number), true) => Fact::of(Value::Const(number.wrapping_neg())),
            _ => Fact::up_to(if wide { u64::MAX } else { WORD }),
        },
        Kind::Extend(width, wide) => {
            let plain = b.max <= mask(width) >> 1;
            match wide {
                _ if plain => copied(ins.b, b),
                true => ANY,
                false => Fact::up_to(WORD),
            }
        }
        Kind::Truncate(width) if a.max <= mask(width) => copied(ins.a, a),
        Kind::Truncate(width) => Fact::up_to(mask(width)),
        Kind::Swap(width) => Fact::up_to(mask(width)),
        Kind::Load(_, true, _) => ANY,
        Kind::Load(Width::B4, false, false) if a.place == Place::Context && (0..=8).contains(&ins.to) => {
            Fact::pointer(Place::Packet)
        }
        Kind::Load(width, false, false) => stack::loaded(facts, ins)
            .unwrap_or_else(|| Fact { known: bytes::loaded(facts, ins, width), ..Fact::up_to(mask(width)) }),
        Kind::Load(width, false, true) => Fact::up_to(mask(width)),
        _ => ANY,
    }
}

/// Whether a mask is a row of ones that has all bits of an operand.
fn keeps_all(a: Fact, b: Fact, whole: bool) -> bool {
    let Some(mask) = b.constant() else { return false };
    let mask = if whole { mask as u64 } else { u64::from(mask as u32) };
    a.max <= mask && mask & mask.wrapping_add(1) == 0
}

/// A copy of an operand.
fn copied(value: Value, fact: Fact) -> Fact {
    match (value, fact.known) {
        (Value::Reg(register), Known::Nothing | Known::Bytes { .. }) => {
            Fact { known: Known::Sum(register, 0), ..fact }
        }
        _ => fact,
    }
}

fn bits(max: u64) -> u64 {
    u64::MAX.checked_shr(max.leading_zeros()).unwrap_or(0)
}

fn wide(alu: Alu, ins: &Ins, a: Fact, b: Fact) -> Fact {
    if let (Some(a), Some(b)) = (a.constant(), b.constant()) {
        return Fact::of(Value::Const(alu.of64(a as u64, b as u64) as i64));
    }
    let count = b.constant();
    if let (Alu::Add, Some(distance)) = (alu, count) {
        return moved(ins, a, distance);
    }
    match alu {
        Alu::Add | Alu::Sub if a.is_pointer() && !b.is_pointer() => Fact::pointer(a.place),
        Alu::Add if b.is_pointer() && !a.is_pointer() => Fact::pointer(b.place),
        _ => Fact::up_to(largest(alu, a.max, b.max, count, u64::MAX)),
    }
}

fn narrow(alu: Alu, a: Fact, b: Fact) -> Fact {
    if let (Alu::Mov, Some(b)) = (alu, b.constant()) {
        return Fact::of(Value::Const(i64::from(b as u32)));
    }
    if let (Some(a), Some(b)) = (a.constant(), b.constant()) {
        return Fact::of(Value::Const(i64::from(alu.of32(a as u32, b as u32))));
    }
    let count = b.constant().map(|count| i64::from(count as u32));
    let b_max = count.map_or(b.max.min(WORD), |count| count as u64);
    let limit = if alu == Alu::Mov { b_max } else { largest(alu, a.max.min(WORD), b_max, count, WORD) };
    Fact::up_to(limit)
}

/// No memory of a card is as large: an address beyond is only a number.
const FAR: i64 = 1 << 28;

/// An operand plus a constant.
fn moved(ins: &Ins, a: Fact, distance: i64) -> Fact {
    let max = match a.is_pointer() {
        true => WORD,
        false => a.max.saturating_add(distance as u64),
    };
    let fact = Fact { known: Known::Nothing, max, place: a.place };
    let Ok(short) = i32::try_from(distance) else { return fact };
    let near = |at: i64| (-FAR..FAR).contains(&at);
    let to =
        |at: u32| Some(i64::from(at) + distance).filter(|at| near(*at)).and_then(|at| u32::try_from(at).ok());
    let known = match (a.known, ins.a) {
        (Known::Is(Value::Frame(at)), _) => {
            let at = Some(i64::from(at) + distance).filter(|at| near(*at));
            at.map(|at| Known::Is(Value::Frame(at as i32)))
        }
        (Known::Is(Value::Data(map, at)), _) => to(at).map(|at| Known::Is(Value::Data(map, at))),
        (Known::Is(Value::Memory(map, at)), _) => to(at).map(|at| Known::Is(Value::Memory(map, at))),
        (Known::Sum(of, at), _) => at.checked_add(short).map(|at| Known::Sum(of, at)),
        (Known::Nothing | Known::Bytes { .. }, Value::Reg(register)) => Some(Known::Sum(register, short)),
        _ => None,
    };
    Fact { known: known.unwrap_or(Known::Nothing), ..fact }
}

/// The largest result, at most `limit`: the largest number of the operation's width.
fn largest(alu: Alu, a: u64, b: u64, count: Option<i64>, limit: u64) -> u64 {
    let half = limit >> 1;
    let shift = count.map(|count| count as u32 & if limit == WORD { 31 } else { 63 });
    let found = match alu {
        Alu::Add => a.checked_add(b),
        Alu::Mul => a.checked_mul(b),
        Alu::Sub | Alu::Mov => None,
        Alu::Div => Some(count.map_or(a, |count| a / (count as u64).max(1))),
        Alu::SignedDiv if a <= half && b <= half => Some(a),
        Alu::Mod => Some(count.map_or(a, |count| a.min((count as u64).saturating_sub(1)))),
        Alu::SignedMod if a <= half && b <= half => Some(a),
        Alu::SignedDiv | Alu::SignedMod => None,
        Alu::Or | Alu::Xor => Some(bits(a | b)),
        Alu::And => Some(a.min(b)),
        Alu::Lsh => shift.filter(|shift| a.leading_zeros() >= *shift).map(|shift| a << shift),
        Alu::Rsh => Some(shift.map_or(a, |shift| a >> shift)),
        Alu::Arsh if a <= half => Some(shift.map_or(a, |shift| a >> shift)),
        Alu::Arsh => None,
    };
    found.filter(|found| *found <= limit).unwrap_or(limit)
}

/// Rewrites operands by the facts, and notes what the code is chosen by.
///
/// `joins` allows loads of more bytes than one at any address.
pub(super) fn rewrite(function: &mut Function, at_blocks: &[Option<Facts>], joins: bool) -> Vec<Note> {
    let unknown = Note {
        a: u64::MAX,
        b: u64::MAX,
        out: u64::MAX,
        place: Place::Unknown,
        number: None,
        arguments: [Known::Nothing; 5],
        result: None,
    };
    let mut notes = vec![unknown; function.ins.len()];
    for ((first, last), facts) in function.blocks().into_iter().zip(at_blocks) {
        let Some(mut now) = *facts else {
            // Code that no way reaches.
            continue;
        };
        for (ins, note) in function.ins[first..=last].iter_mut().zip(&mut notes[first..=last]) {
            let next = after(&now, ins);
            *ins = rewritten(&now, *ins, joins);
            let a = operand(&now, ins.a);
            *note = Note {
                a: a.max,
                b: operand(&now, ins.b).max,
                out: next[ins.dst as usize].max,
                place: a.place,
                number: operand(&now, ins.b).constant(),
                arguments: std::array::from_fn(|at| now[at + 1].known),
                result: now[0].constant(),
            };
            now = next;
        }
    }
    notes
}

fn rewritten(facts: &Facts, ins: Ins, joins: bool) -> Ins {
    let mut ins = ins;
    let pure = matches!(ins.kind, Kind::Alu(..) | Kind::Neg(_) | Kind::Extend(..) | Kind::Truncate(_))
        || stack::loaded(facts, &ins).is_some();
    if pure {
        let result = result(facts, &ins);
        match result.known {
            Known::Is(value) => return Ins { kind: Kind::Alu(Alu::Mov, true), b: value, a: value, ..ins },
            Known::Sum(of, 0) => {
                let of = Value::Reg(of);
                return Ins { kind: Kind::Alu(Alu::Mov, true), b: of, a: of, ..ins };
            }
            Known::Sum(of, at) if fits(i64::from(at)) => {
                let b = Value::Const(i64::from(at));
                return Ins { kind: Kind::Alu(Alu::Add, true), a: Value::Reg(of), b, ..ins };
            }
            Known::Bytes { base, at, count, shift: 0 }
                if joins && matches!(ins.kind, Kind::Alu(Alu::Or, _)) =>
            {
                if let Some(width) = bytes::width(count) {
                    return Ins { kind: Kind::Load(width, false, false), a: base, b: base, to: at, ..ins };
                }
            }
            _ => {}
        }
        ins = if let Kind::Alu(alu, _) = ins.kind { commuted(facts, alu, ins) } else { ins };
    }
    let constant = |value: Value| operand(facts, value).constant();
    if let (Kind::Branch(condition, wide), Some(a), Some(b)) = (ins.kind, constant(ins.a), constant(ins.b)) {
        let holds =
            if wide { condition.holds(a as u64, b as u64) } else { condition.holds32(a as u32, b as u32) };
        return Ins { kind: if holds { Kind::Jump } else { Kind::Nothing }, ..ins };
    }
    if let (Kind::Branch(condition @ (Condition::Equal | Condition::Unequal), true), Some(0)) =
        (ins.kind, constant(ins.b))
        && matches!(
            operand(facts, ins.a).place,
            Place::Present | Place::Packet | Place::Stack | Place::Context
        )
    {
        // A pointer that is not null.
        let kind = if condition == Condition::Equal { Kind::Nothing } else { Kind::Jump };
        return Ins { kind, ..ins };
    }
    match ins.kind {
        Kind::Array { .. } | Kind::Hash { .. } => return ins,
        Kind::Load(..) | Kind::Store(..) | Kind::Atomic(..) => {
            (ins.a, ins.to) = base(facts, ins.a, ins.to);
        }
        _ => ins.a = same(facts, ins.a),
    }
    // The register of an atomic operation is written as well.
    if !matches!(ins.kind, Kind::Atomic(..)) {
        ins.b = same(facts, ins.b);
    }
    match (ins.kind, constant(ins.b)) {
        (Kind::Atomic(..), _) => {}
        (_, Some(0)) => ins.b = Value::Const(0),
        (Kind::Alu(alu, wide), Some(number)) if suits(alu, number) => {
            ins.b = Value::Const(if wide { number } else { i64::from(number as i32) });
        }
        (Kind::Branch(Condition::Test, _), Some(number)) if fits(number) => ins.b = Value::Const(number),
        _ => {}
    }
    match (ins.kind, constant(ins.a)) {
        (Kind::Exit, Some(number)) => ins.a = Value::Const(number),
        (Kind::Atomic(..) | Kind::Load(..) | Kind::Store(..), _) => {}
        (_, Some(0)) => ins.a = Value::Const(0),
        _ => {}
    }
    ins
}

/// Puts a constant behind the other operand where the order does not matter.
fn commuted(facts: &Facts, alu: Alu, ins: Ins) -> Ins {
    let swaps = matches!(alu, Alu::Add | Alu::Mul | Alu::Or | Alu::And | Alu::Xor);
    let (a, b) = (operand(facts, ins.a).constant(), operand(facts, ins.b).constant());
    if swaps && a.is_some() && b.is_none() { Ins { a: ins.b, b: ins.a, ..ins } } else { ins }
}

/// Whether a constant is an operand of the code itself, and needs no register.
fn suits(alu: Alu, number: i64) -> bool {
    match alu {
        Alu::Lsh | Alu::Rsh | Alu::Arsh => true,
        Alu::Mul | Alu::Div | Alu::Mod => number > 0 && number.count_ones() == 1,
        Alu::Add | Alu::Or | Alu::And | Alu::Xor => fits(number),
        _ => false,
    }
}

/// The register that has the same value, or the stack's address.
fn same(facts: &Facts, value: Value) -> Value {
    let Value::Reg(register) = value else { return value };
    match facts[register as usize].known {
        Known::Sum(of, 0) => Value::Reg(of),
        Known::Is(frame @ Value::Frame(_)) if register == 10 => frame,
        _ => value,
    }
}
