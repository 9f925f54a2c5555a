//! The halves of registers that are read later: behind each step, by a pass from the end to the begin.

use super::fact::{Note, Place, WORD, fits};
use super::ir::{Function, Ins, Kind, Value};
use crate::helper::Helper;
use crate::op::{Alu, Atomic, Condition, Width};

/// The part of a register that is read later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Part {
    #[default]
    None,
    Low,
    Whole,
}

/// The parts of r0 to r9.
pub(super) type Demand = [Part; 11];

/// The facts of a program beyond the function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Whether registers have 64 bits.
    pub wide: bool,
    /// Whether the caller of the program reads all of its result: it may be another program.
    pub whole_result: bool,
}

/// The demand at the begin of each block, and behind each step.
pub(super) fn parts(
    function: &Function,
    notes: &[Note],
    reached: &[bool],
    rules: Rules,
) -> (Vec<Demand>, Vec<Demand>) {
    let blocks = function.blocks();
    let mut behind = vec![Demand::default(); function.ins.len()];
    let mut begin = vec![Demand::default(); function.ins.len()];
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); function.ins.len()];
    for (at, &(first, last)) in blocks.iter().enumerate() {
        if reached[first] {
            function.next(last).for_each(|next| before[next].push(at));
        }
    }
    let mut waiting: std::collections::BTreeSet<usize> = (0..blocks.len()).collect();
    while let Some(block) = waiting.pop_last() {
        let (first, last) = blocks[block];
        if !reached[first] {
            continue;
        }
        let mut now = Demand::default();
        // A jump to an end with a known result has an end of its own.
        let known = function.end_of(last).filter(|_| function.is_main && notes[last].result.is_some());
        for next in function.next(last).filter(|next| Some(*next) != known) {
            (0..11).for_each(|register| now[register] = now[register].max(begin[next][register]));
        }
        for at in (first..=last).rev() {
            behind[at] = now;
            now = in_front(now, &function.ins[at], &notes[at], function, rules);
        }
        if begin[first] != now {
            begin[first] = now;
            waiting.extend(&before[first]);
        }
    }
    (begin, behind)
}

/// The demand in front of a step.
fn in_front(behind: Demand, ins: &Ins, note: &Note, function: &Function, rules: Rules) -> Demand {
    let mut now = behind;
    let read = |now: &mut Demand, value: Value, part: Part| {
        if let Value::Reg(register) = value {
            let slot = &mut now[register as usize];
            *slot = (*slot).max(part);
        }
    };
    let address = if rules.wide { Part::Whole } else { Part::Low };
    match ins.kind {
        Kind::Alu(..) | Kind::Neg(_) | Kind::Extend(..) | Kind::Truncate(_) | Kind::Swap(_) => {
            let part = behind[ins.dst as usize];
            now[ins.dst as usize] = Part::None;
            if part != Part::None {
                let (a, b) = operands(ins, note, part, rules.wide);
                read(&mut now, ins.a, a);
                read(&mut now, ins.b, b);
            }
        }
        Kind::Load(_, _, acquire) => {
            let part = behind[ins.dst as usize];
            now[ins.dst as usize] = Part::None;
            if part != Part::None || acquire {
                read(&mut now, ins.a, address);
            }
        }
        Kind::Store(width, _) => {
            read(&mut now, ins.a, address);
            read(&mut now, ins.b, half(width == Width::B8, note.b, rules.wide));
        }
        Kind::Atomic(atomic, wide) => {
            if atomic == Atomic::CompareExchange {
                now[0] = if wide { Part::Whole } else { Part::Low };
            } else if let (Value::Reg(src), true) = (ins.b, atomic.fetches()) {
                now[src as usize] = Part::None;
            }
            read(&mut now, ins.a, address);
            read(&mut now, ins.b, if wide { Part::Whole } else { Part::Low });
        }
        Kind::Branch(condition, wide) => {
            let (a, b) = compared(condition, wide, ins, note, rules.wide);
            read(&mut now, ins.a, a);
            read(&mut now, ins.b, b);
        }
        Kind::Helper(number) => {
            (0..=5).for_each(|register| now[register] = Part::None);
            for (register, whole) in (1..).zip(arguments(number)) {
                let part = match whole {
                    Argument::Word => Part::Low,
                    Argument::Address => address,
                    Argument::Whole => Part::Whole,
                };
                now[register] = part;
            }
        }
        Kind::Array { .. } | Kind::Hash { .. } | Kind::Sum { .. } | Kind::Push(_) => {
            return in_front_of_helper(behind, ins, note, rules);
        }
        Kind::Call => {
            now[0] = Part::None;
            (1..=5).for_each(|register| now[register] = Part::Whole);
        }
        Kind::Exit => {
            now = Demand::default();
            let whole = !function.is_main || rules.whole_result;
            read(&mut now, ins.a, if whole { Part::Whole } else { Part::Low });
        }
        // The lookup has the result.
        Kind::Tested(_) => now[0] = now[0].max(Part::Low),
        Kind::Nothing | Kind::Jump => {}
    }
    now
}

/// The demand in front of a helper in place. It writes the registers of arguments. The key of a hash is on the stack, and the card
/// knows its frame.
fn in_front_of_helper(behind: Demand, ins: &Ins, note: &Note, rules: Rules) -> Demand {
    let mut now = behind;
    (0..=5).for_each(|register| now[register] = Part::None);
    let address = if rules.wide { Part::Whole } else { Part::Low };
    let (a, b) = match ins.kind {
        Kind::Array { number: true, .. } if !rules.wide || note.a > WORD => (Part::Low, Part::None),
        Kind::Array { number: true, .. } => (Part::Whole, Part::None),
        Kind::Array { .. } => (address, Part::None),
        Kind::Sum { .. } => (address, Part::Low),
        _ => (Part::None, Part::None),
    };
    for (value, part) in [(ins.a, a), (ins.b, b)] {
        if let (Value::Reg(register), true) = (value, behind[0] != Part::None) {
            now[register as usize] = now[register as usize].max(part);
        }
    }
    now
}

/// An argument of a helper: a 32-bit number, an address, or 64 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    Word,
    Address,
    Whole,
}

/// The arguments that a helper reads. On RV32 the upper halves of numbers and addresses are undefined.
pub(super) fn arguments(number: u32) -> &'static [Argument] {
    use Argument::{Address, Whole, Word};
    match Helper::of(number) {
        Some(Helper::MapLookup | Helper::MapDelete | Helper::MapPop | Helper::MapPeek) => &[Address, Address],
        Some(Helper::MapUpdate) => &[Address, Address, Address, Whole],
        Some(Helper::MapPush) => &[Address, Address, Whole],
        Some(Helper::MapLookupPercpu) => &[Address, Address, Word],
        Some(Helper::KtimeGet | Helper::KtimeGetBoot | Helper::KtimeGetCoarse | Helper::KtimeGetTai) => &[],
        Some(Helper::Random | Helper::Cpu | Helper::Jiffies) => &[],
        Some(Helper::TracePrintk) => &[Address, Word, Whole, Whole, Whole],
        Some(Helper::TraceVprintk) => &[Address, Word, Address, Word],
        Some(Helper::TailCall) => &[Address, Address, Word],
        Some(Helper::Redirect) => &[Word, Whole],
        Some(Helper::RedirectMap) => &[Address, Whole, Whole],
        Some(Helper::PerfEventOutput) => &[Address, Address, Whole, Address, Whole],
        Some(Helper::CsumDiff) => &[Address, Word, Address, Word, Word],
        Some(Helper::AdjustHead | Helper::AdjustMeta | Helper::AdjustTail) => &[Address, Word],
        Some(Helper::SpinLock | Helper::SpinUnlock | Helper::BuffLen) => &[Address],
        Some(Helper::RingbufOutput) => &[Address, Address, Whole, Whole],
        Some(Helper::RingbufReserve) => &[Address, Whole, Whole],
        Some(Helper::RingbufSubmit | Helper::RingbufDiscard | Helper::RingbufQuery) => &[Address, Whole],
        Some(Helper::ForEachMapElem) => &[Address, Address, Address, Whole],
        Some(Helper::Loop) => &[Word, Address, Address, Whole],
        Some(Helper::LoadBytes | Helper::StoreBytes) => &[Address, Word, Address, Word],
        None => &[Whole; 5],
    }
}

/// All of a register, or only its low half where the upper one is not read or known to be 0.
///
/// A 64-bit register has an upper half of 0 as well, so that it is read.
fn half(whole: bool, max: u64, wide: bool) -> Part {
    if whole && (wide || max > WORD) { Part::Whole } else { Part::Low }
}

/// The parts that a comparison reads.
fn compared(condition: Condition, whole: bool, ins: &Ins, note: &Note, wide: bool) -> (Part, Part) {
    if !wide {
        return (half(whole, note.a, false), half(whole, note.b, false));
    }
    if whole {
        return (Part::Whole, Part::Whole);
    }
    let exact = compares_whole(condition, ins, note);
    let part = |max: u64| if exact && max <= WORD { Part::Whole } else { Part::Low };
    (part(note.a), part(note.b))
}

/// Whether a 32-bit comparison can compare 64-bit registers: both upper halves are known to be 0.
pub(super) fn compares_whole(condition: Condition, ins: &Ins, note: &Note) -> bool {
    if condition == Condition::Test {
        return false;
    }
    let signed = matches!(
        condition,
        Condition::Greater | Condition::GreaterOrEqual | Condition::Less | Condition::LessOrEqual
    );
    let limit = if signed { WORD >> 1 } else { WORD };
    let plain = |value: Value, max: u64| match value {
        Value::Const(number) => (0..1 << 31).contains(&number),
        _ => max <= limit,
    };
    plain(ins.a, note.a) && plain(ins.b, note.b)
}

/// The parts of its operands that an operation reads for a part of its result.
fn operands(ins: &Ins, note: &Note, part: Part, wide: bool) -> (Part, Part) {
    let both = |part: Part| (part, part);
    let whole = part == Part::Whole;
    let (a, b) = (half(whole, note.a, wide), half(whole, note.b, wide));
    match ins.kind {
        Kind::Alu(Alu::Mov, true) => (Part::None, b),
        Kind::Alu(alu, true) => match alu {
            Alu::Add | Alu::Sub | Alu::Mul if !whole || (!wide && note.out <= WORD) => both(Part::Low),
            Alu::And if !wide && note.out <= WORD => both(Part::Low),
            Alu::Or | Alu::And | Alu::Xor | Alu::Add | Alu::Sub | Alu::Mul => (a, b),
            Alu::Lsh if !whole && matches!(ins.b, Value::Const(_)) => both(Part::Low),
            Alu::Lsh => (a, Part::Low),
            Alu::Rsh | Alu::Arsh => (half(true, note.a, wide), Part::Low),
            _ => (half(true, note.a, wide), half(true, note.b, wide)),
        },
        Kind::Alu(alu, false) => narrow(alu, ins, note, whole, wide),
        Kind::Extend(..) => (Part::None, Part::Low),
        Kind::Neg(true) => (half(whole, note.a, wide), Part::None),
        Kind::Truncate(Width::B8) => (half(whole, note.a, wide), Part::None),
        Kind::Swap(Width::B8) => (half(true, note.a, wide), Part::None),
        _ => (Part::Low, Part::None),
    }
}

/// The parts that a 32-bit operation reads. With 64-bit registers, operands with upper halves of 0 make such a result.
fn narrow(alu: Alu, ins: &Ins, note: &Note, whole: bool, wide: bool) -> (Part, Part) {
    let keeps = keeps_zeros(alu, ins, note);
    let part = if wide && whole && keeps { Part::Whole } else { Part::Low };
    match alu {
        Alu::Mov => (Part::None, part),
        // A mask clears the upper half.
        Alu::And if matches!(ins.b, Value::Const(mask) if fits(mask) && mask >= 0) => (Part::Low, Part::Low),
        Alu::Or | Alu::And | Alu::Xor => (part, part),
        _ => (Part::Low, Part::Low),
    }
}

/// Whether an operation on whole registers has a result with an upper half of 0.
pub(super) fn keeps_zeros(alu: Alu, ins: &Ins, note: &Note) -> bool {
    let plain = |value: Value, max: u64| match value {
        Value::Const(number) => number >= 0,
        _ => max <= WORD,
    };
    match alu {
        Alu::Mov => note.b <= WORD,
        Alu::Or | Alu::And | Alu::Xor => plain(ins.a, note.a) && plain(ins.b, note.b),
        _ => false,
    }
}

/// Whether an access can be one of whole words: its address is a multiple of its size.
pub(super) fn is_aligned(ins: &Ins, place: Place, bytes: usize) -> bool {
    let bytes = bytes as i32;
    match ins.a {
        Value::Frame(at) => (at + ins.to) % bytes == 0,
        Value::Data(_, at) => (at as i32).wrapping_add(ins.to) % bytes == 0,
        _ => matches!(place, Place::Context | Place::Stack),
    }
}
