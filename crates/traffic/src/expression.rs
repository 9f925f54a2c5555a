//! The contents of a traffic expression.

use crate::form::Form;
use std::net::IpAddr;
use std::ops::Range;
use std::path::PathBuf;

/// A description of traffic: the source of frames, their number, and their due times.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The expression.
    pub(crate) text: String,
    /// The source of frames.
    pub source: Source,
    /// The rate of frames.
    pub rate: Rate,
    /// The arrival process of frames, if `rate` is in bits or frames per second.
    pub arrivals: Arrivals,
    /// The number of frames. `None` means all frames of a capture that is not looped.
    pub packets: Option<u64>,
    /// The rank of the destination host, if the expression gives it.
    pub to: Option<u32>,
    /// The earliest start of the first frame, in picoseconds after the beginning of the run, if the expression gives
    /// it.
    pub start_ps: Option<u64>,
    /// Whether the expression gives source addresses, and whether it gives destination addresses.
    pub(crate) says: (bool, bool),
    /// Whether the expression asks for the sizes of IMIX.
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
        /// The treatment of packets that were captured only in part.
        cut: Cut,
    },
    /// A template of headers.
    Template(Template),
}

/// The treatment of packets that were captured only in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Such a packet is an error.
    Refuse,
    /// Such a packet is padded with zeros.
    Pad,
}

/// A template of frames of a transport protocol over IP. The addresses determine the version of IP.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The transport protocol.
    pub protocol: Protocol,
    /// The source addresses of flows.
    pub src: Addresses,
    /// The destination addresses of flows, of the same version of IP.
    pub dst: Addresses,
    /// The source ports of flows.
    pub sport: Ports,
    /// The destination ports of flows.
    pub dport: Ports,
    /// The number of flows. Each flow has a different combination of addresses and ports.
    pub flows: u64,
    /// The distribution of frames over flows.
    pub popularity: Popularity,
    /// The sizes of frames in bytes, without the frame check sequence.
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
    /// Returns the number of bytes in the headers of Ethernet, IP (version 6 if `ip6`, or else 4) and this protocol.
    pub const fn headers(self, ip6: bool) -> u64 {
        14 + if ip6 { 40 } else { 20 }
            + match self {
                Protocol::Udp => 8,
                Protocol::Tcp => 20,
            }
    }
}

/// Maximum number of bits in which the used addresses of a network differ. A network with more free bits has more
/// addresses than a run has frames.
const MOST_BITS: u32 = 40;
/// In a network with more than `MOST_BITS` free bits, the distance between used addresses, modulo the size of the
/// network. It is odd, so that all used addresses differ.
const APART: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// The addresses of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The first address.
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
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl Ports {
    /// Returns the number of ports.
    pub const fn count(self) -> u64 {
        self.last as u64 - self.first as u64 + 1
    }
}

/// A distribution of frames over flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Popularity {
    /// All flows are equally frequent.
    Uniform,
    /// Zipf's law: the share of the flow with rank k is proportional to k^-s. The value is the exponent s.
    Zipf(f64),
}

/// The distribution of frame sizes in bytes, without the frame check sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Pairs of a size and its weight. The share of a size is proportional to its weight.
    Weighted(Vec<(u64, u64)>),
    /// All sizes from the first to the last, including both, equally frequent.
    Range(u64, u64),
}

impl Sizes {
    /// Returns the frame sizes of the simple IMIX: IP packets of 40, 576 and 1500 bytes, in the proportion 7 : 4 : 1.
    /// Their frames have 64, 594 and 1518 bytes with the frame check sequence of four bytes. The returned sizes do not
    /// include it.
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

    /// Raises all sizes below `least` to `least`.
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

    /// Returns the smallest and the largest size.
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
    /// Back to back: each frame is due as soon as the wire is free.
    Wire,
    /// Frames are due at the times recorded in the capture.
    Recorded,
    /// A number of bits per second, counted in frames without gaps.
    BitsPerSecond(u64),
    /// A number of frames per second.
    PacketsPerSecond(u64),
}

/// The relative tolerance of the comparison with the wire's rate. It is needed because the wire time of each frame is
/// rounded to whole picoseconds.
const ROUNDED: f64 = 1e-3;

impl Rate {
    /// Returns an error text if this rate is above that of the wire. The run would then have a lower rate than the
    /// expression says. The wire takes `wire_s` seconds for `frames` frames with `bytes` bytes altogether.
    pub fn above_the_wire(self, frames: u64, bytes: u64, wire_s: f64) -> Option<String> {
        let (frames, bits) = (frames as f64, 8.0 * bytes as f64);
        let (written, seconds) = match self {
            Rate::Wire | Rate::Recorded => return None,
            Rate::BitsPerSecond(rate) => (format!("{} Gbps", rate as f64 / 1e9), bits / rate as f64),
            Rate::PacketsPerSecond(rate) => (format!("{} Mpps", rate as f64 / 1e6), frames / rate as f64),
        };
        (wire_s > seconds * (1.0 + ROUNDED)).then(|| {
            format!(
                "a rate of {written} exceeds the rate of the wire: {:.2} Gbps of these packets, {:.3} Mpps; \
                 write rate=wire or a lower rate",
                bits / wire_s / 1e9,
                frames / wire_s / 1e6,
            )
        })
    }
}

/// The arrival process of frames at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Frames are evenly spaced.
    Paced,
    /// The gaps between frames are exponentially distributed.
    Poisson,
    /// Frames come in bursts of this number of frames. On average, the bursts have the rate of the expression.
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
        assert!(why.contains("a rate of 101 Mpps exceeds the rate of the wire: 100.00 Gbps"), "{why}");
        assert!(of(Rate::BitsPerSecond(200_000_000_000)).is_some());
    }
}
