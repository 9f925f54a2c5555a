//! The parameters of LogGOPS, and what an operation costs by them.

use crate::schedule::{Kind, Op, Schedule};
use nicety_types::{Duration, Gap};

/// The parameters of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// L: the latency from one host to another.
    pub latency: Duration,
    /// o: what a CPU does for a message.
    pub overhead: Duration,
    /// g: the time between the starts of messages at an interface.
    pub gap: Duration,
    /// G: the time of a further byte at an interface.
    pub gap_per_byte: Gap,
    /// O: the time of a further byte at a CPU.
    pub overhead_per_byte: Gap,
    /// S: the longest message that is sent at once; the sender of a longer one waits for the receive.
    pub eager_bytes: u64,
}

/// Which rules a run follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// nicety's own.
    #[default]
    Own,
    /// Those of LogGOPSim, to the nanosecond.
    LogGopSim,
}

/// Parameters as whole numbers of the ticks of a run: picoseconds, or nanoseconds by the rules of LogGOPSim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub(super) latency: u64,
    overhead: u64,
    gap: u64,
    per_byte: [PerByte; 2],
    pub(super) eager: u64,
    tick_ps: u64,
}

/// A gap a byte, without a division where it is whole.
#[derive(Clone, Copy, Debug)]
enum PerByte {
    Whole(u64),
    Fraction(Gap),
}

const G: usize = 0;
const O: usize = 1;

/// A parameter that the rules of LogGOPSim cannot have.
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

    /// The time after which a host hears of another at the earliest: messages take their overhead, too, and what follows the
    /// end of a long one does not.
    pub(super) fn lookahead(&self, schedule: &Schedule) -> u64 {
        let is_long = |op: &Op| op.kind == Kind::Send && op.size > self.eager;
        match schedule.ops().iter().any(is_long) {
            true => self.latency,
            false => self.latency.saturating_add(self.overhead),
        }
    }

    /// The time of the bytes of a message behind its first one. By LogGOPSim's rules a message without bytes has -1 of them.
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

    /// When a calculation that starts now is done.
    #[inline]
    pub(super) fn calc<const COMPAT: bool>(&self, now: u64, ns: u64) -> u64 {
        Self::add::<COMPAT>(now, if COMPAT { ns } else { ns.saturating_mul(1000 / self.tick_ps) })
    }

    /// When the CPU is done with sending a message that it begins to send now.
    #[inline]
    pub(super) fn sent<const COMPAT: bool>(&self, now: u64, size: u64) -> u64 {
        Self::add::<COMPAT>(Self::add::<COMPAT>(now, self.overhead), self.further::<COMPAT>(O, size))
    }

    /// When an interface can begin the next message.
    #[inline]
    pub(super) fn next<const COMPAT: bool>(&self, now: u64, size: u64) -> u64 {
        Self::add::<COMPAT>(Self::add::<COMPAT>(now, self.gap), self.further::<COMPAT>(G, size))
    }

    /// When a message that is sent now arrives.
    #[inline]
    pub(super) fn arrives<const COMPAT: bool>(&self, now: u64) -> u64 {
        Self::add::<COMPAT>(Self::add::<COMPAT>(now, self.overhead), self.latency)
    }

    /// When the CPU is done with receiving a message that it begins to receive now.
    #[inline]
    pub(super) fn received<const COMPAT: bool>(&self, now: u64, size: u64) -> u64 {
        let bytes = self.further::<COMPAT>(O, size).max(self.further::<COMPAT>(G, size));
        Self::add::<COMPAT>(Self::add::<COMPAT>(now, self.overhead), bytes)
    }
}

/// A gap as whole picoseconds a byte, if it is that.
fn whole(gap: Gap) -> Option<u64> {
    let one = gap.cover(1).ps();
    (gap == Gap::new(one, 1)).then_some(one)
}
