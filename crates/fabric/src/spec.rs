//! The specifications of links, switches and routers.

use nicety_types::{Duration, Gap};

/// The specification of a link.
#[derive(Clone, Copy, Debug)]
pub struct LinkSpec {
    /// Propagation delay; at least one picosecond, since it is the lookahead between nodes.
    pub latency: Duration,
    /// Time per byte on the wire.
    pub gap: Gap,
    /// Size of header and framing on the wire for each packet, in bytes.
    pub header: u64,
    /// Capacity in packets of the receiving end's buffer, for each virtual channel.
    pub buffer: u32,
    /// Number of virtual channels, at least one.
    pub channels: u8,
    /// Word stuffing, checksum and resending.
    pub protocol: LinkProtocol,
}

/// The protocol of a link, without its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkProtocol {
    /// Size in bytes of the control words that are stuffed into the stream after every [`LinkProtocol::stuffing_every`]
    /// bytes.
    pub stuffing: u64,
    /// Number of packet bytes between control words, at least one.
    pub stuffing_every: u64,
    /// Checksum and resending; `None` on a link that accepts damaged packets.
    pub resend: Option<Resend>,
}

impl LinkProtocol {
    /// Neither stuffing nor resending.
    pub const NONE: LinkProtocol = LinkProtocol { stuffing: 0, stuffing_every: 1, resend: None };

    /// Whether bit errors can occur on the link.
    pub(crate) fn has_bit_errors(&self) -> bool {
        self.resend.is_some_and(|resend| !resend.bit_errors.is_zero())
    }
}

/// A checksum of each packet, and resends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resend {
    /// Number of resends before a packet counts as lost.
    pub retries: u32,
    /// Time from a packet's last byte to its resend, if no answer arrives: the retransmission timeout.
    pub timeout: Duration,
    /// The bit error rate.
    pub bit_errors: BitErrorRate,
}

/// The probability of an error in a bit, in units of 2^-63.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BitErrorRate(u64);

/// Probability 1.
pub(crate) const ONE: u64 = 1 << 63;

impl BitErrorRate {
    /// No bit errors.
    pub const ZERO: BitErrorRate = BitErrorRate(0);

    /// Returns the rate `numerator / denominator`, rounded to 2^-63.
    ///
    /// # Panics
    /// When the rate is more than 1 or the denominator is zero.
    pub fn new(numerator: u64, denominator: u64) -> BitErrorRate {
        assert!(numerator <= denominator && denominator > 0, "a probability of {numerator}/{denominator}");
        let doubled = (u128::from(numerator) << 64) / u128::from(denominator);
        BitErrorRate(doubled.div_ceil(2) as u64)
    }

    pub(crate) const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Returns the probability of an error in `bytes` bytes, in units of 2^-63: 1 - (1 - rate)^bits.
    pub(crate) fn of_bytes(self, bytes: u64) -> u64 {
        // The computation uses integers, so that the result is the same on every machine.
        let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 63) as u64;
        let (mut intact, mut power, mut bits) = (ONE, ONE - self.0, u128::from(bytes) * 8);
        while bits > 0 {
            if bits & 1 == 1 {
                intact = times(intact, power);
            }
            power = times(power, power);
            bits >>= 1;
        }
        ONE - intact
    }
}

/// The specification of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchSpec {
    /// Time from the arrival of a packet's head at an input until the head is routed and at an output.
    pub latency: Duration,
    /// Number of ports.
    pub ports: u32,
    /// Capacity in packets of the input buffer of each port.
    pub buffer: u32,
}

/// The specification of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterSpec {
    /// Time from the arrival of a packet's head at an input until the head is routed and at an output.
    pub latency: Duration,
    /// Capacity in packets of the input buffer of each port, for each virtual channel.
    pub buffer: u32,
    /// Capacity in packets of the input buffer for the router's own card. An output serves packets in the order of
    /// their arrival. So card and transit traffic share a link in proportion to their numbers of packets in the router.
    /// With equal numbers, each card on the path would take half of the link's remaining rate, and the network would
    /// congest.
    pub entry: u32,
    /// Time per byte between card and router. If `None`, it is the gap of the card's link.
    pub gap: Option<Gap>,
    /// The medium of the links of each axis.
    pub axes: [Medium; 3],
}

/// The values of the links of a torus axis. `None` for a value means that of the card's link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Medium {
    /// Propagation delay; at least a picosecond.
    pub latency: Option<Duration>,
    /// Time per byte.
    pub gap: Option<Gap>,
    /// The bit error rate, for a link with resends.
    pub bit_errors: Option<BitErrorRate>,
}

impl Medium {
    /// The medium of the card's link.
    pub const LINK: Medium = Medium { latency: None, gap: None, bit_errors: None };
}

impl LinkSpec {
    /// Returns this link with the values of `medium`.
    pub(crate) fn on(self, medium: &Medium) -> LinkSpec {
        let mut link = self;
        link.latency = medium.latency.unwrap_or(link.latency);
        link.gap = medium.gap.unwrap_or(link.gap);
        if let (Some(resend), Some(rate)) = (&mut link.protocol.resend, medium.bit_errors) {
            resend.bit_errors = rate;
        }
        link
    }
}

/// The specifications of a network's links, switches and routers.
#[derive(Clone, Copy, Debug)]
pub struct NetworkSpec {
    /// The specification of every link, except the links of hosts in
    /// [`Topology::build_for`](crate::Topology::build_for). Its `buffer` is the buffer of a card. A switch uses
    /// [`SwitchSpec::buffer`].
    pub link: LinkSpec,
    /// The specification of every switch.
    pub switch: SwitchSpec,
    /// The specification of every host's router on a torus. If `None`, it has the parameters of `switch`.
    pub router: Option<RouterSpec>,
}
