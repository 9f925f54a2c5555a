//! Programs that are a card's frame handler themselves.
//!
//! The wrapper in C makes Linux's context for a program: six words from a frame's, and what the helpers need. A program that does
//! nothing else with its context than `bounds` allows reads them in the frame. Its result is then a destination of the frame
//! instead of a verdict.

use super::code::{Coder, line};
use super::demand::Part;
use super::fact::Place;
use super::ir::{Kind, Value};
use super::sites::{End, Rare};
use crate::card::INTERFACE;
use crate::helper::Helper;

/// The runtime's function for verdicts that are no destination by themselves.
const VERDICT: &str = "nicety_xdp_verdict";
/// The same for a frame with other bounds than on arrival.
const CHANGED_VERDICT: &str = "nicety_xdp_changed_verdict";
/// The runtime's function for a frame that the card cannot send.
const TOO_LONG: &str = "nicety_xdp_too_long";
/// Linux's offsets in a context. Metadata is empty, as no helper of such a program makes any.
const DATA: i32 = 0;
const DATA_END: i32 = 4;
const DATA_META: i32 = 8;
const INTERFACE_IN: i32 = 12;
const QUEUE: i32 = 16;
/// Verdicts with a destination: drop, pass, send back. The destination is the verdict less one.
const DESTINATIONS: std::ops::RangeInclusive<i64> = 1..=3;
/// The card's command that adds bytes in front of a frame.
const FRAME_PUSH: u32 = 0x170;

/// The runtime's function for a helper on the bounds of a frame.
pub(super) fn helper(number: u32) -> Option<&'static str> {
    match Helper::of(number) {
        Some(Helper::AdjustHead) => Some("nicety_frame_adjust_head"),
        Some(Helper::AdjustTail) => Some("nicety_frame_adjust_tail"),
        Some(Helper::BuffLen) => Some("nicety_frame_get_buff_len"),
        _ => None,
    }
}

impl Coder<'_> {
    /// The offsets of a frame's length and channel. The address of its first byte has the width of registers.
    fn frame_offsets(&self) -> (i32, i32) {
        if self.wide() { (8, 16) } else { (4, 12) }
    }

    /// Loads a field of the context from the frame, if the step does so.
    pub(super) fn load_bound(&mut self, at: usize) -> bool {
        let ins = self.function.ins[at];
        let part = self.behind[at][ins.dst as usize];
        if !self.is_field(at) {
            return false;
        }
        let (true, Value::Reg(base)) = (part != Part::None, ins.a) else { return true };
        let (frame, to) = (self.low[base as usize], self.low[ins.dst as usize]);
        let (length, channel) = self.frame_offsets();
        // Addresses of a card have 32 bits.
        let load = if self.wide() { "lwu" } else { "lw" };
        match ins.to {
            DATA if self.is_loaded(at) => {}
            DATA | DATA_META => line!(self, "{load} {to}, 0({frame})"),
            DATA_END => {
                let data = self.data_beside(at);
                if !self.data_is_before(at) {
                    line!(self, "{load} {}, 0({frame})", data.unwrap_or("t1"));
                }
                line!(self, "{load} t0, {length}({frame})");
                line!(self, "add {to}, {}, t0", data.unwrap_or("t1"));
            }
            INTERFACE_IN => line!(self, "li {to}, {INTERFACE}"),
            QUEUE => line!(self, "{load} {to}, {channel}({frame})"),
            _ => line!(self, "li {to}, 0"),
        }
        if part == Part::Whole && !self.wide() {
            line!(self, "li {}, 0", self.high[ins.dst as usize]);
        }
        true
    }

    /// Whether a step loads a field of the context.
    fn is_field(&self, at: usize) -> bool {
        let is_load = matches!(self.function.ins[at].kind, Kind::Load(..));
        self.direct.is_some() && is_load && self.notes[at].place == Place::Context
    }

    /// Whether two steps in a row load both bounds of the packet: the first byte's address into a register that stays.
    fn loads_both(&self, data: usize, end: usize) -> bool {
        let both = [data, end].iter().all(|&at| self.function.ins.get(at).is_some() && self.is_field(at));
        if !both || self.function.leads[data.max(end)] {
            return false;
        }
        let (first, second) = (&self.function.ins[data], &self.function.ins[end]);
        let apart = first.dst != second.dst && first.a == second.a;
        let kept = [first, second].iter().all(|ins| Value::Reg(ins.dst) != ins.a);
        let read =
            [data, end].iter().all(|&at| self.behind[at][self.function.ins[at].dst as usize] != Part::None);
        (first.to, second.to) == (DATA, DATA_END) && apart && kept && read
    }

    /// Whether the step in front of the load of an end has loaded the first byte's address.
    fn data_is_before(&self, at: usize) -> bool {
        at > 0 && self.loads_both(at - 1, at)
    }

    /// The register of the first byte's address, where a step beside the load of an end loads that.
    fn data_beside(&self, at: usize) -> Option<&'static str> {
        let data = if self.data_is_before(at) { at - 1 } else { at + 1 };
        self.loads_both(data, at).then(|| self.low[self.function.ins[data].dst as usize])
    }

    /// Whether the step in front has loaded the first byte's address for this one as well.
    fn is_loaded(&self, at: usize) -> bool {
        at > 0 && self.loads_both(at, at - 1) && !self.data_is_before(at - 1)
    }

    /// Adds bytes in front of the frame. The headroom has them, so that r0 is 0.
    pub(super) fn push(&mut self, bytes: u32, at: usize) {
        line!(self, "li a0, {bytes}");
        for register in ["a1", "a2", "a3", "a4"] {
            line!(self, "li {register}, 0");
        }
        line!(self, "li a7, {FRAME_PUSH}");
        line!(self, "ecall");
        let part = self.behind[at][0];
        if part != Part::None {
            line!(self, "li {}, 0", self.low[0]);
        }
        if part == Part::Whole && !self.wide() {
            line!(self, "li {}, 0", self.high[0]);
        }
    }

    /// Whether the frame may have other bounds than on arrival at an end behind a step. Other ways may lead to that end as well.
    pub(super) fn is_changed(&self, origin: usize) -> bool {
        let Some(changed) = self.direct else { return false };
        let ends = self.function.ins.get(origin + 1).is_some_and(|next| next.kind == Kind::Exit);
        changed[origin] || (ends && changed[origin + 1])
    }

    /// Keeps the address of the frame for the end of a program that changes its bounds.
    pub(super) fn keep_frame(&mut self) {
        if let Some(place) = self.frame.handed {
            line!(self, "s{} a0, {place}(sp)", if self.wide() { "d" } else { "w" });
        }
    }

    fn load_frame(&mut self, to: &str) {
        if let Some(place) = self.frame.handed {
            line!(self, "l{} {to}, {place}(sp)", if self.wide() { "d" } else { "w" });
        }
    }

    /// The end of a handler: the destination for a verdict.
    pub(super) fn end_handler(&mut self, verdict: Value, origin: usize) {
        let changed = self.is_changed(origin);
        match verdict {
            Value::Const(number) if DESTINATIONS.contains(&i64::from(number as i32)) => {
                let too_long = (changed && number as i32 != 1).then(|| self.test_length());
                line!(self, "li a0, {}", number as i32 - 1);
                self.leave();
                line!(self, "ret");
                if let Some(label) = too_long {
                    self.aborts.rare.push(Rare { label, origin, end: End::TooLong });
                }
            }
            Value::Const(number) => {
                if number as u32 == 0 {
                    self.count(origin);
                }
                line!(self, "li a0, {}", number as i32);
                self.tail_verdict(changed);
            }
            value if changed => {
                let aborted = self.label();
                let from = self.low_of(value, "a0");
                match self.wide() {
                    true => line!(self, "sext.w a0, {from}"),
                    false if from != "a0" => line!(self, "mv a0, {from}"),
                    false => {}
                }
                line!(self, "beqz a0, {aborted}");
                self.tail_verdict(true);
                self.aborts.rare.push(Rare { label: aborted, origin, end: End::Aborted });
            }
            value => {
                let other = self.label();
                let from = self.low_of(value, "a0");
                let short = if self.wide() { "addiw" } else { "addi" };
                line!(self, "{short} a0, {from}, -1");
                line!(self, "li t0, {}", DESTINATIONS.end());
                line!(self, "bgeu a0, t0, {other}");
                self.leave();
                line!(self, "ret");
                self.aborts.rare.push(Rare { label: other, origin, end: End::Aborted });
            }
        }
    }

    /// Jumps to a label where the frame is longer than the card sends.
    fn test_length(&mut self) -> String {
        let label = self.label();
        let length = self.frame_offsets().0;
        self.load_frame("t0");
        line!(self, "lw t0, {length}(t0)");
        line!(self, "li t1, {}", self.options.longest);
        line!(self, "bltu t1, t0, {label}");
        label
    }

    /// The end by the runtime's function for the verdict in a0.
    fn tail_verdict(&mut self, changed: bool) {
        if changed {
            self.load_frame("a1");
        }
        self.leave();
        line!(self, "tail {}", if changed { CHANGED_VERDICT } else { VERDICT });
    }

    /// The end of a frame that is too long.
    pub(super) fn end_too_long(&mut self) {
        self.leave();
        line!(self, "tail {TOO_LONG}");
    }

    /// The end for a verdict that is no destination by itself: it is in a0, less one where the frame has its first bounds.
    pub(super) fn end_elsewhere(&mut self, origin: usize) {
        let other = self.label();
        if !self.is_changed(origin) {
            line!(self, "addi a0, a0, 1");
            line!(self, "bnez a0, {other}");
        }
        self.count(origin);
        self.mark(&other);
        self.leave();
        line!(self, "tail {VERDICT}");
    }
}
