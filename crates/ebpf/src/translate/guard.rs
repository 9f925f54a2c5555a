//! Checks of a program that no verifier has seen, in front of each access and each helper: `handlers/runtime/xdp/check.c`.
//!
//! In such code s10 has the state of the core, `struct xdp_run`. Every function adds its stack to it.

use super::code::{Coder, line};
use super::debug::Refusal;
use super::demand::Part;
use super::fact::{Known, Place};
use super::ir::{Function, Ins, Kind, Value};
use super::{Options, refuse};
use crate::error::ObjectError;
use crate::helper::{self, Helper};
use crate::map::Flags;
use crate::object::Linked;
use std::fmt::Write;

/// The states of all cores.
pub const RUNS_NAME: &str = "nicety_xdp_runs";
/// Bytes of a state.
pub const RUN: u32 = 144;
/// The offset of the number of functions in it, and that of their stacks.
const DEPTH: u32 = 4;
const STACKS: u32 = 8;
/// Bits of a check: a write, a helper in place of bytes, and the begin of the place or of the helper's number.
const WRITE: u32 = 1 << 8;
const HELPER: u32 = 1 << 9;
const PLACE: u32 = 10;

/// An access of a program.
struct Access {
    bytes: usize,
    write: bool,
    place: Place,
}

impl Access {
    /// The number of the place in a check.
    fn number(&self) -> u32 {
        match self.place {
            Place::Unknown => 0,
            Place::Context => 1,
            Place::Packet => 2,
            Place::Stack => 3,
            Place::Value | Place::Present => 4,
        }
    }

    /// The reason of its trap.
    fn text(&self) -> String {
        let does = if self.write { "writes" } else { "reads" };
        let bytes = format!("{does} {} byte{}", self.bytes, if self.bytes == 1 { "" } else { "s" });
        let place = match self.place {
            Place::Context => "that are not a word of the context",
            Place::Packet => "outside the packet; compare with data_end first",
            Place::Stack => "outside the stack; a function has bytes r10-512 to r10-1",
            Place::Value | Place::Present => {
                "outside one value of a map; compare a lookup's result with 0, and an index with the size, first"
            }
            Place::Unknown => "outside packet, stack, map values and context",
        };
        format!("{bytes} {place}")
    }
}

/// The access of a step, if it makes one that later code needs.
fn access(coder: &Coder<'_>, at: usize) -> Option<Access> {
    let (ins, place) = (&coder.function.ins[at], coder.notes[at].place);
    let read = |bytes, place| Some(Access { bytes, write: false, place });
    let write = |bytes| Some(Access { bytes, write: true, place });
    match ins.kind {
        Kind::Load(width, _, acquire) => {
            let needed = acquire || coder.behind[at][ins.dst as usize] != Part::None;
            needed.then_some(()).and_then(|()| read(width.bytes(), place))
        }
        Kind::Store(width, _) => write(width.bytes()),
        Kind::Atomic(_, wide) => write(if wide { 8 } else { 4 }),
        Kind::Array { number: false, .. } if coder.behind[at][0] != Part::None => read(4, Place::Unknown),
        _ => None,
    }
}

impl Coder<'_> {
    /// Checks a step that accesses memory or calls a helper.
    pub(super) fn guard(&mut self, at: usize) {
        if !self.options.unverified {
            return;
        }
        let ins = self.function.ins[at];
        if let Kind::Helper(number) = ins.kind {
            return self.guard_call(number, at);
        }
        let Some(access) = access(self, at) else { return };
        match self.is_inside(&ins, &access) {
            Some(true) => return,
            Some(false) => {
                let label = self.refused(at, access.text());
                line!(self, "j {label}");
                return;
            }
            None => {}
        }
        self.low_into("t0", ins.a);
        self.plus("t0", "t0", i64::from(ins.to));
        let write = if access.write { WRITE } else { 0 };
        let check = access.bytes as u32 | write | access.number() << PLACE;
        self.call_guard("nicety_xdp_guard", check, (at, access.text()));
    }

    /// Whether an access at a known place is allowed; none for a place that is known at run time.
    fn is_inside(&self, ins: &Ins, access: &Access) -> Option<bool> {
        let inside = |at: i64, size: i64| at >= 0 && at + access.bytes as i64 <= size;
        match ins.a {
            Value::Frame(at) => {
                Some(inside(i64::from(at) + i64::from(ins.to) + i64::from(super::STACK), super::STACK.into()))
            }
            Value::Data(map, at) => {
                let map = &self.maps[map as usize];
                let allowed = !access.write || map.flags & Flags::READ_ONLY_PROGRAM == 0;
                Some(allowed && inside(i64::from(at) + i64::from(ins.to), map.value_size.into()))
            }
            _ => None,
        }
    }

    fn guard_call(&mut self, number: u32, at: usize) {
        use Helper as H;
        let plain = matches!(
            Helper::of(number),
            None | Some(H::KtimeGet | H::KtimeGetBoot | H::KtimeGetCoarse | H::KtimeGetTai)
                | Some(H::Random | H::Cpu | H::Jiffies | H::TailCall | H::Redirect | H::Loop)
        );
        if plain {
            return;
        }
        let name = helper::name(number).unwrap_or("unknown");
        let text = format!(
            "an argument of bpf_{name} is not a map, context, record or memory that the helper accepts"
        );
        self.call_guard("nicety_xdp_guard_call", HELPER | number << PLACE, (at, text));
    }

    fn call_guard(&mut self, name: &str, check: u32, (at, text): (usize, String)) {
        let label = self.refused(at, text);
        line!(self, "li t1, {check}");
        line!(self, "call t2, {name}");
        line!(self, "bnez t1, {label}");
    }

    /// The label of a trap of a step.
    fn refused(&mut self, at: usize, text: String) -> String {
        let label = self.label();
        let slot = self.program.linked.code.slots[self.function.first + at] as usize;
        let line = self.program.linked.line(slot);
        let place = line.map(|line| (self.program.file(&line.file), line.line));
        self.refusals.push(Refusal { label: label.clone(), text, place });
        label
    }

    /// Writes the traps.
    pub(super) fn refused_ends(&mut self) {
        for refusal in self.refusals.clone() {
            self.mark(&refusal.label);
            if let Some((file, line)) = refusal.place {
                self.text.line = Some((file, line));
            }
            line!(self, "ebreak");
            self.mark(&refusal.end());
        }
    }

    /// Adds the function's stack to those of the core.
    pub(super) fn push_stack(&mut self, bytes: i32) {
        if !self.options.unverified {
            return;
        }
        line!(self, "lw t0, {DEPTH}(s10)");
        line!(self, "slli t1, t0, 3");
        line!(self, "add t1, t1, s10");
        line!(self, "addi t2, sp, {}", self.frame.end - bytes);
        line!(self, "sw t2, {STACKS}(t1)");
        line!(self, "addi t2, sp, {}", self.frame.end);
        line!(self, "sw t2, {}(t1)", STACKS + 4);
        line!(self, "addi t0, t0, 1");
        line!(self, "sw t0, {DEPTH}(s10)");
    }

    /// Removes it.
    pub(super) fn pop_stack(&mut self) {
        if self.options.unverified {
            line!(self, "lw t1, {DEPTH}(s10)");
            line!(self, "addi t1, t1, -1");
            line!(self, "sw t1, {DEPTH}(s10)");
        }
    }
}

/// Puts the address of the core's state into s10.
pub(super) fn load_run(options: &Options, body: &mut String) {
    body.push_str("\tcsrr t0, mhartid\n");
    if let Some(cluster) = options.cluster {
        let _ = write!(
            body,
            "\tsrli t1, t0, 5\n\tandi t0, t0, 31\n\tli t2, {cluster}\n\tmul t1, t1, t2\n\tadd t0, t0, t1\n"
        );
    }
    let _ = write!(body, "\tli t1, {RUN}\n\tmul t0, t0, t1\n\tlla s10, {RUNS_NAME}\n\tadd s10, s10, t0\n");
}

/// Refuses a callback that is found at run time: nothing there tells functions from other code.
pub(super) fn check_callbacks(
    linked: &Linked,
    function: &Function,
    notes: &[super::fact::Note],
    reached: &[bool],
) -> Result<(), ObjectError> {
    for (at, ins) in function.ins.iter().enumerate().filter(|(at, _)| reached[*at]) {
        let calls = [Helper::Loop, Helper::ForEachMapElem].map(|helper| Kind::Helper(helper as u32));
        let known = matches!(notes[at].arguments[1], Known::Is(Value::Function(_)));
        if calls.contains(&ins.kind) && !known {
            let problem = "a callback that is known only at run time";
            return refuse(linked, function.first + at, problem, "name the function in the call");
        }
    }
    Ok(())
}
