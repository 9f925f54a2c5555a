//! Traffic as an expression describes it.

use crate::form::Form;
use std::net::IpAddr;
use std::ops::Range;
use std::path::PathBuf;

/// Traffic: where frames come from, how many, and when they are due.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The expression.
    pub(crate) text: String,
    /// Where frames come from.
    pub source: Source,
    /// When they are due.
    pub rate: Rate,
    /// How they follow each other at a rate.
    pub arrivals: Arrivals,
    /// The number of frames; of a capture that is not looped all of it, where it is none.
    pub packets: Option<u64>,
    /// Whose card they go to, where that is said.
    pub to: Option<u32>,
    /// When the first may leave, in picoseconds after the beginning, where that is said.
    pub start_ps: Option<u64>,
    /// Whether the expression says addresses of sources, and of destinations.
    pub(crate) says: (bool, bool),
    /// Whether its sizes are those of IMIX.
    pub(crate) is_imix: bool,
    /// The bytes of the expression that say sizes, if any do.
    pub(crate) size_at: Option<Range<usize>>,
    /// What packets are.
    pub(crate) form: Form,
}

/// Where frames come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A capture.
    Capture {
        /// The file: pcap or pcapng, perhaps compressed.
        path: PathBuf,
        /// Whether it begins again at its end.
        looped: bool,
        /// What becomes of packets of which not all was captured.
        cut: Cut,
    },
    /// A template of headers.
    Template(Template),
}

/// What becomes of packets of which not all was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// An error.
    Refuse,
    /// They are filled up with zeros.
    Pad,
}

/// Frames of a transport protocol over IP, of the version of its addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The transport protocol.
    pub protocol: Protocol,
    /// Source addresses of flows.
    pub src: Addresses,
    /// Destination addresses, of the same version of IP.
    pub dst: Addresses,
    /// Source ports.
    pub sport: Ports,
    /// Destination ports.
    pub dport: Ports,
    /// The number of flows: that many different headers.
    pub flows: u64,
    /// How often each flow has a frame.
    pub popularity: Popularity,
    /// Bytes of frames, without the frame check sequence.
    pub sizes: Sizes,
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
}

impl Protocol {
    /// Bytes of all headers: Ethernet, IP of version 6 or 4, and its own.
    pub const fn headers(self, ip6: bool) -> u64 {
        14 + if ip6 { 40 } else { 20 }
            + match self {
                Protocol::Udp => 8,
                Protocol::Tcp => 20,
            }
    }
}

/// Most bits by which the addresses that are used of a network differ: a network of IP version 6 has more than frames could have.
const MOST_BITS: u32 = 40;
/// Where more bits are free, addresses are this far apart, modulo the network: an odd number, so that no two are the same.
const APART: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// A network's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The first.
    pub first: IpAddr,
    /// How many of its last bits are free: 0 of a single address.
    pub bits: u32,
}

impl Addresses {
    /// How many are used, at least one: all of them, of IP version 4.
    pub const fn count(self) -> u64 {
        1 << if self.bits < MOST_BITS { self.bits } else { MOST_BITS }
    }

    /// One of those that are used, as a number.
    pub(crate) fn number(self, index: u64) -> u128 {
        let first = match self.first {
            IpAddr::V4(first) => u32::from(first).into(),
            IpAddr::V6(first) => u128::from(first),
        };
        let index = u128::from(index);
        let free = u128::MAX.checked_shr(128 - self.bits).unwrap_or(0);
        first | if self.bits > MOST_BITS { index.wrapping_mul(APART) & free } else { index }
    }
}

/// Ports that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl Ports {
    /// How many there are.
    pub const fn count(self) -> u64 {
        self.last as u64 - self.first as u64 + 1
    }
}

/// How often each flow has a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// Each as often as any other.
    Uniform,
    /// The one of rank k in proportion to k to the power of minus this.
    Zipf(f64),
}

/// Bytes of frames, without the frame check sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Each of these sizes with its weight.
    Weighted(Vec<(u64, u64)>),
    /// Each from the first to the last as often as any other.
    Range(u64, u64),
}

impl Sizes {
    /// The usual simple IMIX: IP packets of 40, 576 and 1500 bytes as 7 : 4 : 1, in frames of 64, 594 and 1518 bytes, of which
    /// the last four are the frame check sequence, which no handler sees.
    pub fn imix() -> Sizes {
        Sizes::Weighted(vec![(60, 7), (590, 4), (1514, 1)])
    }

    /// The same without Ethernet's header and padding.
    pub(crate) fn imix_packets() -> Sizes {
        Sizes::Weighted(vec![(40, 7), (576, 4), (1500, 1)])
    }

    /// With so many bytes more.
    pub(crate) fn plus(self, bytes: u64) -> Sizes {
        match self {
            Sizes::Range(first, last) => Sizes::Range(first + bytes, last + bytes),
            Sizes::Weighted(sizes) => {
                Sizes::Weighted(sizes.into_iter().map(|(size, weight)| (size + bytes, weight)).collect())
            }
        }
    }

    /// With every size that is below this one raised to it.
    pub(crate) fn at_least(self, least: u64) -> Sizes {
        match self {
            Sizes::Range(first, last) => Sizes::Range(first.max(least), last.max(least)),
            Sizes::Weighted(sizes) => {
                Sizes::Weighted(sizes.into_iter().map(|(size, weight)| (size.max(least), weight)).collect())
            }
        }
    }

    /// The mean, in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Sizes::Range(first, last) => (*first + *last) as f64 / 2.0,
            Sizes::Weighted(sizes) => {
                let weights: f64 = sizes.iter().map(|(_, weight)| *weight as f64).sum();
                sizes.iter().map(|(size, weight)| *size as f64 * *weight as f64).sum::<f64>() / weights
            }
        }
    }

    /// The smallest and the largest.
    pub fn extent(&self) -> (u64, u64) {
        match self {
            Sizes::Range(first, last) => (*first, *last),
            Sizes::Weighted(sizes) => {
                let all = || sizes.iter().map(|(size, _)| *size);
                (all().min().unwrap_or(0), all().max().unwrap_or(0))
            }
        }
    }
}

/// When frames are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// One behind the other, as the wire takes them.
    Wire,
    /// At the times of the capture.
    Recorded,
    /// So many bits of frames in a second.
    BitsPerSecond(u64),
    /// So many frames in a second.
    PacketsPerSecond(u64),
}

/// By how much frames may seem to take the wire for longer than it does: each takes whole picoseconds.
const ROUNDED: f64 = 1e-3;

impl Rate {
    /// Why so many frames with so many bytes, which take a wire for so many seconds, do not have this rate on it: figures would be
    /// those of another one. None where they do.
    pub fn above_the_wire(self, frames: u64, bytes: u64, wire_s: f64) -> Option<String> {
        let (frames, bits) = (frames as f64, 8.0 * bytes as f64);
        let (written, seconds) = match self {
            Rate::Wire | Rate::Recorded => return None,
            Rate::BitsPerSecond(rate) => (format!("{} Gbps", rate as f64 / 1e9), bits / rate as f64),
            Rate::PacketsPerSecond(rate) => (format!("{} Mpps", rate as f64 / 1e6), frames / rate as f64),
        };
        (wire_s > seconds * (1.0 + ROUNDED)).then(|| {
            format!(
                "a rate of {written} is more than the wire takes: {:.2} Gbps of these packets, {:.3} Mpps; write rate=wire, or less",
                bits / wire_s / 1e9,
                frames / wire_s / 1e6,
            )
        })
    }
}

/// How frames follow each other at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At the rate, evenly.
    Paced,
    /// Gaps between them are exponentially distributed.
    Poisson,
    /// So many at once, and bursts at the rate.
    Bursts(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_above_that_of_the_wire_is_no_experiment() {
        // 1000 packets of 125 bytes occupy the wire for 10 us: 100 Gb/s, and 100 million a second.
        let of = |rate: Rate| rate.above_the_wire(1000, 125_000, 10e-6);
        assert_eq!(of(Rate::BitsPerSecond(100_000_000_000)), None);
        assert_eq!(of(Rate::PacketsPerSecond(100_000_000)), None);
        assert_eq!(of(Rate::Wire), None);
        let why = of(Rate::PacketsPerSecond(101_000_000)).unwrap();
        assert!(why.contains("a rate of 101 Mpps is more than the wire takes: 100.00 Gbps"), "{why}");
        assert!(of(Rate::BitsPerSecond(200_000_000_000)).is_some());
    }
}
