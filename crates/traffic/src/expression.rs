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
    /// The number of frames. `None` means all frames of a capture that is not looped.
    pub packets: Option<u64>,
    /// The rank of the host to which the frames go, if given.
    pub to: Option<u32>,
    /// The earliest start of the first frame, in picoseconds after the beginning of the run, if given.
    pub start_ps: Option<u64>,
    /// Whether the expression gives source addresses, and whether it gives destination addresses.
    pub(crate) says: (bool, bool),
    /// Whether the sizes are IMIX.
    pub(crate) is_imix: bool,
    /// The range of the expression that gives sizes, if any.
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

/// A template of frames of a transport protocol over IP. The addresses determine the version of IP.
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
    /// The number of flows. Each flow has addresses and ports of its own.
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
    /// Returns the bytes of all headers: of Ethernet, IP of version 6 or 4, and this protocol.
    pub const fn headers(self, ip6: bool) -> u64 {
        14 + if ip6 { 40 } else { 20 }
            + match self {
                Protocol::Udp => 8,
                Protocol::Tcp => 20,
            }
    }
}

/// The most free bits that used addresses vary in. A network with more free bits has more addresses than a run has
/// frames.
const MOST_BITS: u32 = 40;
/// The distance between used addresses in a network with more free bits, modulo the size of the network. An odd
/// distance keeps the addresses distinct.
const APART: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// The addresses of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The first.
    pub first: IpAddr,
    /// The number of free bits at the end of the address; 0 for a single address.
    pub bits: u32,
}

impl Addresses {
    /// Returns the number of used addresses, at least 1. In an IPv4 network, all addresses are used.
    pub const fn count(self) -> u64 {
        1 << if self.bits < MOST_BITS { self.bits } else { MOST_BITS }
    }

    /// Returns the used address with this index, as a number.
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
    /// All flows are equally frequent.
    Uniform,
    /// Zipf's law: the flow of rank k has a share in proportion to k^-s, with this exponent s.
    Zipf(f64),
}

/// Bytes of frames, without the frame check sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// These sizes, each with its weight.
    Weighted(Vec<(u64, u64)>),
    /// All sizes from the first to the last, equally frequent.
    Range(u64, u64),
}

impl Sizes {
    /// Returns the usual simple IMIX: IP packets of 40, 576 and 1500 bytes, in the proportion 7 : 4 : 1. Their frames
    /// have 64, 594 and 1518 bytes. These include the frame check sequence of four bytes, which is not in the returned
    /// sizes.
    pub fn imix() -> Sizes {
        Sizes::Weighted(vec![(60, 7), (590, 4), (1514, 1)])
    }

    /// Returns the simple IMIX as sizes of IP packets, without Ethernet's header and padding.
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

    /// Returns the mean size in bytes.
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
    /// Back to back, each frame as soon as the wire is free.
    Wire,
    /// At the recorded times of the capture.
    Recorded,
    /// Bits of frames per second.
    BitsPerSecond(u64),
    /// Frames per second.
    PacketsPerSecond(u64),
}

/// The tolerance of the comparison with the wire's rate, because the wire time of each frame is rounded to whole
/// picoseconds.
const ROUNDED: f64 = 1e-3;

impl Rate {
    /// Returns an error text if this rate is above that of the wire, because the results would be those of another
    /// rate. The wire takes `wire_s` seconds for `frames` frames of `bytes` bytes in all.
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
    /// In bursts of this number of frames. The bursts have the given rate on average.
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
