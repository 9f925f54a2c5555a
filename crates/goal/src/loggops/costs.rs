//! The parameters of LogGOPS, and the costs of operations.

use crate::schedule::{Kind, Op, Schedule};
use nicety_types::{Duration, Gap};

/// The parameters of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// L: the latency from one host to another.
    pub latency: Duration,
    /// o: the CPU time of a message.
    pub overhead: Duration,
    /// g: the time between the starts of messages at an interface.
    pub gap: Duration,
    /// G: the time of each byte after the first at an interface.
    pub gap_per_byte: Gap,
    /// O: the time of each byte after the first at a CPU.
    pub overhead_per_byte: Gap,
    /// S: the longest eager message, in bytes; the sender of a longer one waits for the receive.
    pub eager_bytes: u64,
}

/// The rules of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// nicety's own.
    #[default]
    Own,
    /// The rules of LogGOPSim, to the nanosecond.
    LogGopSim,
}

/// Parameters in ticks of a run: picoseconds, or nanoseconds by the rules of LogGOPSim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) latency: u64,
    overhead: u64,
    gap: u64,
    per_byte: [PerByte; 2],
    pub(super) eager: u64,
    tick_ps: u64,
}

/// A gap per byte, without a division if it is whole.
#[derive(Clone, Copy, Debug)]
enum PerByte {
    Whole(u64),
    Fraction(Gap),
}

const G: usize = 0;
const O: usize = 1;

/// A parameter that the rules of LogGOPSim do not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotWhole(pub &'static str);

impl Costs {
    pub(super) fn own(parameters: &Parameters) -> Costs {
        let per_byte = [parameters.gap_per_byte, parameters.overhead_per_byte].map(|gap| match whole(gap) {
            Some(ps) => PerByte::Whole(ps),
            None => PerByte::Fraction(gap),
        });
        Costs {
            latency: parameters.latency.ps(),
            overhead: parameters.overhead.ps(),
            gap: parameters.gap.ps(),
            per_byte,
            eager: parameters.eager_bytes,
            tick_ps: 1,
        }
    }

    pub(super) fn loggopsim(parameters: &Parameters) -> Result<Costs, NotWhole> {
        let ns = |ps: Option<u64>, name| match ps {
            Some(ps) if ps % 1000 == 0 => Ok(ps / 1000),
            _ => Err(NotWhole(name)),
        };
        Ok(Costs {
            latency: ns(Some(parameters.latency.ps()), "latency (L)")?,
            overhead: ns(Some(parameters.overhead.ps()), "overhead (o)")?,
            gap: ns(Some(parameters.gap.ps()), "gap (g)")?,
            per_byte: [
                PerByte::Whole(ns(whole(parameters.gap_per_byte), "gap_per_byte (G)")?),
                PerByte::Whole(ns(whole(parameters.overhead_per_byte), "overhead_per_byte (O)")?),
            ],
            eager: parameters.eager_bytes,
            tick_ps: 1000,
        })
    }

    /// Returns the shortest time in which a host can affect another. Messages take o + L, but the completion of a long one takes only L.
    pub(super) fn lookahead(&self, schedule: &Schedule) -> u64 {
        let is_long = |op: &Op| op.kind == Kind::Send && op.size > self.eager;
        match schedule.ops().iter().any(is_long) {
            true => self.latency,
            false => self.latency.saturating_add(self.overhead),
        }
    }

    /// Returns the time of a message's bytes after the first. By LogGOPSim's rules a message without bytes has -1 of them.
    #[inline]
    fn further<const COMPAT: bool>(&self, which: usize, size: u64) -> u64 {
        match self.per_byte[which] {
            PerByte::Whole(ticks) if COMPAT => size.wrapping_sub(1).wrapping_mul(ticks),
            PerByte::Whole(ticks) => size.saturating_sub(1).saturating_mul(ticks),
            PerByte::Fraction(gap) => gap.cover(size.saturating_sub(1)).ps(),
        }
    }

    #[inline]
    pub(super) fn add<const COMPAT: bool>(time: u64, more: u64) -> u64 {
        if COMPAT { time.wrapping_add(more) } else { time.saturating_add(more) }
    }

    /// Returns the end of a calculation that starts now.
    #[inline]
    pub(super) fn calc<const COMPAT: bool>(&self, now: u64, ns: u64) -> u64 {
        Self::add::<COMPAT>(now, if COMPAT { ns } else { ns.saturating_mul(1000 / self.tick_ps) })
    }

    /// Returns when the CPU ends the send of a message that starts now.
    #[inline]
    pub(super) fn sent<const COMPAT: bool>(&self, now: u64, size: u64) -> u64 {
        Self::add::<COMPAT>(Self::add::<COMPAT>(now, self.overhead), self.further::<COMPAT>(O, size))
    }

    /// Returns when an interface can begin the next message.
    #[inline]
    pub(super) fn next<const COMPAT: bool>(&self, now: u64, size: u64) -> u64 {
        Self::add::<COMPAT>(Self::add::<COMPAT>(now, self.gap), self.further::<COMPAT>(G, size))
    }

    /// Returns the arrival time of a message that is sent now.
    #[inline]
    pub(super) fn arrives<const COMPAT: bool>(&self, now: u64) -> u64 {
        Self::add::<COMPAT>(Self::add::<COMPAT>(now, self.overhead), self.latency)
    }

    /// Returns when the CPU ends the receive of a message that starts now.
    #[inline]
    pub(super) fn received<const COMPAT: bool>(&self, now: u64, size: u64) -> u64 {
        let bytes = self.further::<COMPAT>(O, size).max(self.further::<COMPAT>(G, size));
        Self::add::<COMPAT>(Self::add::<COMPAT>(now, self.overhead), bytes)
    }
}

/// Returns a gap in picoseconds per byte, if that is a whole number.
fn whole(gap: Gap) -> Option<u64> {
    let one = gap.cover(1).ps();
    (gap == Gap::new(one, 1)).then_some(one)
}
