//! The parameters of LogGOPS, and the costs of operations.

use crate::schedule::{Kind, Op, Schedule};
use nicety_types::{Duration, Gap};

/// The parameters of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// L: the latency between any two hosts.
    pub latency: Duration,
    /// o: the CPU time for a message, at both ends.
    pub overhead: Duration,
    /// g: the time between the starts of two messages at an interface.
    pub gap: Duration,
    /// G: the time that each byte after the first takes at an interface.
    pub gap_per_byte: Gap,
    /// O: the time that each byte after the first takes at a CPU.
    pub overhead_per_byte: Gap,
    /// S: the maximum length of an eager message in bytes. The sender of a longer message waits for the receive.
    pub eager_bytes: u64,
}

/// The rules of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// The rules of nicety.
    #[default]
    Own,
    /// The rules of LogGOPSim, to the nanosecond.
    LogGopSim,
}

/// The parameters in ticks of a run. A tick is a picosecond, or a nanosecond by the rules of LogGOPSim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) latency: u64,
    overhead: u64,
    gap: u64,
    per_byte: [PerByte; 2],
    pub(super) eager: u64,
    tick_ps: u64,
}

/// A gap per byte. If it is a whole number of ticks, its use needs no division.
#[derive(Clone, Copy, Debug)]
enum PerByte {
    Whole(u64),
    Fraction(Gap),
}

const G: usize = 0;
const O: usize = 1;

/// The name of a parameter that is not a whole number of nanoseconds, as the rules of LogGOPSim require.
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

    /// Returns the minimum time in which an event at one host can affect another host. A message takes o + L, but the completion
    /// of a long message takes only L.
    pub(super) fn lookahead(&self, schedule: &Schedule) -> u64 {
        let is_long = |op: &Op| op.kind == Kind::Send && op.size > self.eager;
        match schedule.ops().iter().any(is_long) {
            true => self.latency,
            false => self.latency.saturating_add(self.overhead),
        }
    }

    /// Returns the time that the bytes of a message after the first take. By LogGOPSim's rules, a message without bytes has -1 of
    /// these bytes.
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

    /// Returns the time at which the CPU has finished the send of a message that starts now.
    #[inline]
    pub(super) fn sent<const COMPAT: bool>(&self, now: u64, size: u64) -> u64 {
        Self::add::<COMPAT>(Self::add::<COMPAT>(now, self.overhead), self.further::<COMPAT>(O, size))
    }

    /// Returns the time from which an interface can begin the next message, if one starts now.
    #[inline]
    pub(super) fn next<const COMPAT: bool>(&self, now: u64, size: u64) -> u64 {
        Self::add::<COMPAT>(Self::add::<COMPAT>(now, self.gap), self.further::<COMPAT>(G, size))
    }

    /// Returns the arrival time of a message that starts now.
    #[inline]
    pub(super) fn arrives<const COMPAT: bool>(&self, now: u64) -> u64 {
        Self::add::<COMPAT>(Self::add::<COMPAT>(now, self.overhead), self.latency)
    }

    /// Returns the time at which the CPU has finished the receive of a message that starts now.
    #[inline]
    pub(super) fn received<const COMPAT: bool>(&self, now: u64, size: u64) -> u64 {
        let bytes = self.further::<COMPAT>(O, size).max(self.further::<COMPAT>(G, size));
        Self::add::<COMPAT>(Self::add::<COMPAT>(now, self.overhead), bytes)
    }
}

/// Returns a gap in picoseconds per byte; `None` if it is not a whole number.
fn whole(gap: Gap) -> Option<u64> {
    let one = gap.cover(1).ps();
    (gap == Gap::new(one, 1)).then_some(one)
}
