//! Traffic, described by an expression.

use crate::form::Form;
use std::net::IpAddr;
use std::ops::Range;
use std::path::PathBuf;

/// Traffic: the source of frames, their number, and their due times.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The expression.
    pub(crate) text: String,
    /// The source of frames.
    pub source: Source,
    /// The rate of frames.
    pub rate: Rate,
    /// The arrival process at a rate.
    pub arrivals: Arrivals,
    /// The number of frames. None: all frames of a capture that is not looped.
    pub packets: Option<u64>,
    /// The rank of the card that they go to, if given.
    pub to: Option<u32>,
    /// The earliest start of the first frame, in picoseconds after the beginning, if given.
    pub start_ps: Option<u64>,
    /// Whether the expression gives source addresses, and destination addresses.
    pub(crate) says: (bool, bool),
    /// Whether the sizes are IMIX.
    pub(crate) is_imix: bool,
    /// The bytes of the expression that give sizes, if any.
    pub(crate) size_at: Option<Range<usize>>,
    /// The form of packets.
    pub(crate) form: Form,
}

/// A source of frames.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A capture.
    Capture {
        /// The file: pcap or pcapng, possibly compressed.
        path: PathBuf,
        /// Whether the capture restarts at its end.
        looped: bool,
        /// The treatment of truncated packets.
        cut: Cut,
    },
    /// A template of headers.
    Template(Template),
}

/// The treatment of packets that were captured only in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// An error.
    Refuse,
    /// Padding with zeros.
    Pad,
}

/// Frames of a transport protocol over IP. The addresses give the version of IP.
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
    /// The number of flows, each with its own headers.
    pub flows: u64,
    /// The distribution of frames over flows.
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
    /// Bytes of all headers: Ethernet, IP of version 6 or 4, and the protocol's own.
    pub const fn headers(self, ip6: bool) -> u64 {
        14 + if ip6 { 40 } else { 20 }
            + match self {
                Protocol::Udp => 8,
                Protocol::Tcp => 20,
            }
    }
}

/// Maximum free bits of used addresses. An IPv6 network has more addresses than a run has frames.
const MOST_BITS: u32 = 40;
/// The distance of used addresses where more bits are free, modulo the network. An odd number keeps them distinct.
const APART: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// The addresses of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The first.
    pub first: IpAddr,
    /// The free bits at its end; 0 for a single address.
    pub bits: u32,
}

impl Addresses {
    /// The number of used addresses, at least one. For IPv4 all addresses are used.
    pub const fn count(self) -> u64 {
        1 << if self.bits < MOST_BITS { self.bits } else { MOST_BITS }
    }

    /// Returns used address `index`, as a number.
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

/// Consecutive ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl Ports {
    /// The number of ports.
    pub const fn count(self) -> u64 {
        self.last as u64 - self.first as u64 + 1
    }
}

/// A distribution of frames over flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// All flows equally often.
    Uniform,
    /// Rank k in proportion to k to the power of minus this exponent.
    Zipf(f64),
}

/// Bytes of frames, without the frame check sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// These sizes, each with its weight.
    Weighted(Vec<(u64, u64)>),
    /// All sizes from the first to the last, equally often.
    Range(u64, u64),
}

impl Sizes {
    /// Returns the usual simple IMIX: IP packets of 40, 576 and 1500 bytes as 7 : 4 : 1. Their frames have 64, 594 and 1518
    /// bytes, including the four bytes of the frame check sequence, which no handler sees.
    pub fn imix() -> Sizes {
        Sizes::Weighted(vec![(60, 7), (590, 4), (1514, 1)])
    }

    /// Returns the same mix without Ethernet's header and padding.
    pub(crate) fn imix_packets() -> Sizes {
        Sizes::Weighted(vec![(40, 7), (576, 4), (1500, 1)])
    }

    /// Adds `bytes` to every size.
    pub(crate) fn plus(self, bytes: u64) -> Sizes {
        match self {
            Sizes::Range(first, last) => Sizes::Range(first + bytes, last + bytes),
            Sizes::Weighted(sizes) => {
                Sizes::Weighted(sizes.into_iter().map(|(size, weight)| (size + bytes, weight)).collect())
            }
        }
    }

    /// Raises smaller sizes to `least`.
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

    /// The smallest and the largest size.
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

/// The due times of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Back to back, as the wire takes them.
    Wire,
    /// At the times of the capture.
    Recorded,
    /// Bits of frames per second.
    BitsPerSecond(u64),
    /// Frames per second.
    PacketsPerSecond(u64),
}

/// Tolerance for the wire time of frames: each frame takes whole picoseconds.
const ROUNDED: f64 = 1e-3;

impl Rate {
    /// Returns an error if the wire needs longer than this rate allows: `wire_s` seconds for `frames` frames of `bytes` bytes in
    /// all. The results would be those of another rate.
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

/// The arrival process of frames at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Evenly spaced.
    Paced,
    /// With exponentially distributed gaps.
    Poisson,
    /// In bursts of this number of frames, at the rate.
    Bursts(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_above_that_of_the_wire_is_no_experiment() {
        // 1000 packets of 125 bytes occupy the wire for 10 us: 100 Gb/s, and 100 million per second.
        let of = |rate: Rate| rate.above_the_wire(1000, 125_000, 10e-6);
        assert_eq!(of(Rate::BitsPerSecond(100_000_000_000)), None);
        assert_eq!(of(Rate::PacketsPerSecond(100_000_000)), None);
        assert_eq!(of(Rate::Wire), None);
        let why = of(Rate::PacketsPerSecond(101_000_000)).unwrap();
        assert!(why.contains("a rate of 101 Mpps is more than the wire takes: 100.00 Gbps"), "{why}");
        assert!(of(Rate::BitsPerSecond(200_000_000_000)).is_some());
    }
}
