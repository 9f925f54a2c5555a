//! The specification of a PCI bus, and the clocks of its transactions.

use nicety_types::{Duration, Frequency};

/// The clock of the address phase.
const ADDRESS: u64 = 1;

/// The clock in which no device drives the bus, between two drivers.
const TURNAROUND: u64 = 1;

/// A PCI bus, and the bridge that joins it to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciSpec {
    /// The bus's clock.
    pub clock: Frequency,
    /// Bytes that a data phase moves: 4 or 8.
    pub width: u64,
    /// Wait clocks of a transaction: neither an address nor data is on the bus.
    pub wait: u64,
    /// Clocks until a device may begin on an idle bus. On a busy bus they overlap with the previous transaction.
    pub arbitration: u64,
    /// Bytes that a write-combining buffer of the host gathers into one burst. The bytes of one data phase (`width`) mean
    /// that the host gathers nothing.
    pub combine: u64,
    /// Maximum bytes of a burst of the card. A burst ends at a multiple of this number.
    pub burst: u64,
    /// Latency of the bridge, in either direction.
    pub latency: Duration,
    /// Bytes of the command that the host pushes in front of a payload.
    pub command: u64,
    /// Bytes of an event that the card writes to the host.
    pub event: u64,
    /// Bytes of a counter that the card writes to the host.
    pub counter: u64,
}

/// An invalid key of a PCI bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key of `[bus.pci]`.
    pub key: &'static str,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: &'static str,
}

impl PciSpec {
    /// Returns all invalid keys. A bus requires a spec without problems.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut refuse = |key, message, help| problems.push(Problem { key, message, help });
        if self.width != 4 && self.width != 8 {
            refuse("width", format!("no PCI bus has {} bits", 8 * self.width), "write 32 or 64");
            return problems;
        }
        for (key, bytes) in [("combine", self.combine), ("burst", self.burst)] {
            if !bytes.is_power_of_two() || bytes < self.width {
                let message = format!("a burst is not {bytes} B");
                refuse(key, message, "write a power of two, a data phase (width) at least");
            }
        }
        problems
    }

    /// Clocks of a transaction that moves `bytes` from `address` on, in whole data phases.
    pub const fn transaction(&self, address: u64, bytes: u64) -> u64 {
        let phases = (address % self.width + bytes).div_ceil(self.width);
        ADDRESS + self.wait + phases + TURNAROUND
    }

    /// Clocks for `bytes` that the host writes from an aligned address. Each full write-combining buffer is a burst,
    /// and each part of the last buffer is a transaction of one data phase.
    pub const fn programmed(&self, bytes: u64) -> u64 {
        let full = self.transaction(0, self.combine);
        let single = self.transaction(0, self.width);
        bytes / self.combine * full + (bytes % self.combine).div_ceil(self.width) * single
    }

    /// Returns the end of the host's transaction that begins with byte `begin` of `bytes`.
    pub const fn gathered(&self, begin: u64, bytes: u64) -> u64 {
        let full = bytes / self.combine * self.combine;
        let step = if begin < full { self.combine } else { self.width };
        let end = (begin / step + 1) * step;
        if end < bytes { end } else { bytes }
    }

    /// Clocks for `bytes` of host memory at `address` that the card reads or writes.
    pub fn mastered(&self, address: u64, bytes: u64) -> u64 {
        self.bursts(address, bytes).map(|(begin, end)| self.transaction(address + begin, end - begin)).sum()
    }

    /// Returns the card's bursts of a transfer: the offsets of their first byte and of the byte after their last.
    pub fn bursts(&self, address: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let most = self.burst;
        let mut next = 0;
        std::iter::from_fn(move || {
            let begin = next;
            next = ((address + begin) / most * most + most - address).min(bytes);
            (begin < bytes).then_some((begin, next))
        })
    }
}
