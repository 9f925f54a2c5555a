//! The specification of a PCI bus, and the number of clocks of its transactions.

use nicety_types::{Duration, Frequency};

/// Number of clocks of the address phase.
const ADDRESS: u64 = 1;

/// Number of clocks of the turnaround, in which no device drives the bus.
const TURNAROUND: u64 = 1;

/// The specification of a PCI bus, and of the bridge between the bus and the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciSpec {
    /// The bus's clock.
    pub clock: Frequency,
    /// Size of a data phase in bytes: 4 or 8.
    pub width: u64,
    /// Number of wait clocks of a transaction. In a wait clock, neither an address nor data is on the bus.
    pub wait: u64,
    /// Number of clocks until a device may begin on an idle bus. On a busy bus they overlap with the previous
    /// transaction.
    pub arbitration: u64,
    /// Size in bytes of a write-combining buffer of the host, which is one burst when full. If it equals `width`, the
    /// host combines no writes.
    pub combine: u64,
    /// Maximum size of a burst of the card in bytes. A burst ends at a multiple of this size.
    pub burst: u64,
    /// Latency of the bridge, in either direction.
    pub latency: Duration,
    /// Size in bytes of the command that the host pushes before a payload.
    pub command: u64,
    /// Size in bytes of an event that the card writes to the host.
    pub event: u64,
    /// Size in bytes of a counter that the card writes to the host.
    pub counter: u64,
}

/// An invalid key of a PCI bus's specification.
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
    /// Returns all invalid keys. A bus needs a specification without problems.
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

    /// Number of clocks of a transaction that moves `bytes` bytes from `address` on, in whole data phases.
    pub const fn transaction(&self, address: u64, bytes: u64) -> u64 {
        let phases = (address % self.width + bytes).div_ceil(self.width);
        ADDRESS + self.wait + phases + TURNAROUND
    }

    /// Number of clocks for `bytes` bytes that the host writes from an aligned address. Each full write-combining
    /// buffer is one burst. Each data phase of the last, partly filled buffer is one transaction.
    pub const fn programmed(&self, bytes: u64) -> u64 {
        let full = self.transaction(0, self.combine);
        let single = self.transaction(0, self.width);
        bytes / self.combine * full + (bytes % self.combine).div_ceil(self.width) * single
    }

    /// Returns the end offset of the host's transaction that begins at offset `begin` of a transfer of `bytes` bytes.
    pub const fn gathered(&self, begin: u64, bytes: u64) -> u64 {
        let full = bytes / self.combine * self.combine;
        let step = if begin < full { self.combine } else { self.width };
        let end = (begin / step + 1) * step;
        if end < bytes { end } else { bytes }
    }

    /// Number of clocks for `bytes` bytes of host memory at `address` that the card reads or writes.
    pub fn mastered(&self, address: u64, bytes: u64) -> u64 {
        self.bursts(address, bytes).map(|(begin, end)| self.transaction(address + begin, end - begin)).sum()
    }

    /// Returns the card's bursts of a transfer: for each burst, the offset of its first byte and the offset after its
    /// last byte.
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
