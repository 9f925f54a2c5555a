//! The protocol of a link: word stuffing, a checksum of each packet, and retransmission (go-back-N).
//!
//! The far end checks each packet, and answers a damaged packet with a NAK. The sender then resends this packet and all
//! packets after it. A lost packet is not acknowledged, and the sender resends it after a timeout. The far end accepts
//! packets in the order of their numbers. It discards packets that follow a faulty packet, and the sender sends them
//! again. So a faulty packet occupies the wire from the start of its first transmission to the end of its last one. The
//! model computes this time in one step. The far end discards a duplicate, which it recognises by its number. A late
//! packet delays the packets behind it.

use crate::capture::{Disposition, Tap};
use crate::faults::{Cause, Injector};
use crate::spec::{LinkProtocol, LinkSpec, Resend};
use crate::transit::Transit;
use nicety_kernel::{Rng, Sim};
use nicety_types::{Duration, LinkId, Time};
use std::cell::RefCell;

impl LinkSpec {
    /// Serialisation time of a packet with this payload, including its header and the stuffed words.
    pub fn serialisation(&self, payload: u64) -> Duration {
        self.gap.cover(Framing::of(self).bytes(payload))
    }
}

/// Bytes on the wire besides a packet's payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framing {
    // The fields are small because every port of every switch has them.
    header: u32,
    stuffing: u32,
    every: u32,
}

impl Framing {
    /// # Panics
    /// When a number of bytes is 2^32 or more.
    pub(crate) fn of(spec: &LinkSpec) -> Framing {
        let few = |bytes: u64| u32::try_from(bytes).expect("fewer than 2^32 bytes");
        let LinkProtocol { stuffing, stuffing_every, .. } = spec.protocol;
        Framing { header: few(spec.header), stuffing: few(stuffing), every: few(stuffing_every) }
    }

    /// Size on the wire, in bytes, of a packet with this payload.
    pub(crate) fn bytes(self, payload: u64) -> u64 {
        let bytes = payload + u64::from(self.header);
        match self.stuffing {
            0 => bytes,
            stuffing => bytes + bytes / u64::from(self.every) * u64::from(stuffing),
        }
    }
}

/// The sending end of a link that resends packets.
pub(crate) struct Resending {
    resend: Resend,
    /// The one-way latency. A NAK takes the same time in the opposite direction.
    latency: Duration,
    bit_errors: RefCell<BitErrors>,
}

/// The source of random bit errors.
struct BitErrors {
    rng: Rng,
    /// The length in bytes of the last packet, and the probability of a bit error in a packet of this length.
    known: (u64, u64),
}

/// A packet's transmissions on the link.
pub(crate) struct Course {
    /// Start of the last transmission.
    pub(crate) begin: Time,
    /// Time at which the wire is free after the last transmission's last byte.
    pub(crate) end: Time,
    /// Earliest start of the next packet.
    pub(crate) free: Time,
    /// Number of resends.
    pub(crate) resent: u32,
    /// Delay in addition to the link's latency, or `None` if the packet is lost.
    pub(crate) late: Option<Duration>,
}

impl Resending {
    pub(crate) fn new(sim: &Sim, link: LinkId, resend: Resend, latency: Duration) -> Resending {
        let rng = sim.rng(&format!("bit errors of link {}", link.0));
        Resending { resend, latency, bit_errors: RefCell::new(BitErrors { rng, known: (0, 0) }) }
    }

    pub(crate) fn has_bit_errors(&self) -> bool {
        !self.resend.bit_errors.is_zero()
    }

    /// Returns the transmissions of a packet with `bytes` bytes on the wire. The first transmission occupies the wire
    /// from `begin` to `end`, and each further transmission occupies it for `again`.
    pub(crate) fn course(
        &self,
        packet: &mut Transit,
        (faults, tap): (Option<&Injector>, Option<&Tap>),
        bytes: u64,
        (mut begin, mut end): (Time, Time),
        again: Duration,
    ) -> Course {
        let keep = |packet: &Transit, time, disposition| {
            if let Some(tap) = tap {
                tap.keep(packet, time, disposition);
            }
        };
        let mut resent = 0;
        loop {
            let verdict = faults.map(|faults| faults.judge_checked(begin));
            let struck = self.is_struck(bytes);
            let (cause, answer) = match verdict.as_ref().and_then(|verdict| verdict.lost) {
                Some(cause) => (cause, self.resend.timeout),
                None if struck || verdict.as_ref().is_some_and(|verdict| verdict.damaged) => {
                    (Cause::BitErrors, self.latency + self.latency)
                }
                None => {
                    let late = verdict.as_ref().map_or(Duration::ZERO, |verdict| verdict.delay);
                    keep(packet, begin, Disposition { again: resent > 0, late, ..Disposition::default() });
                    let copy = match (faults, verdict) {
                        (Some(faults), Some(verdict)) if verdict.again => {
                            faults.duplicated();
                            keep(packet, end + late, Disposition { again: true, ..Disposition::default() });
                            again
                        }
                        _ => Duration::ZERO,
                    };
                    return Course { begin, end, free: end + late + copy, resent, late: Some(late) };
                }
            };
            let damaged = cause == Cause::BitErrors;
            keep(
                packet,
                begin,
                Disposition { lost: !damaged, damaged, again: resent > 0, ..Disposition::default() },
            );
            if let Some(faults) = faults {
                faults.failed_transmission(cause, resent < self.resend.retries);
            }
            let next = end + answer;
            if resent == self.resend.retries {
                if let Some(faults) = faults {
                    faults.give_up(packet.inside(), begin, cause);
                }
                return Course { begin, end, free: next, resent, late: None };
            }
            resent += 1;
            (begin, end) = (next, next + again);
        }
    }

    fn is_struck(&self, bytes: u64) -> bool {
        if self.resend.bit_errors.is_zero() {
            return false;
        }
        let BitErrors { rng, known } = &mut *self.bit_errors.borrow_mut();
        if known.0 != bytes {
            *known = (bytes, self.resend.bit_errors.of_bytes(bytes));
        }
        rng.next_u64() >> 1 < known.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{BitErrorRate, ONE};

    #[test]
    fn the_probability_of_a_packet_follows_from_that_of_a_bit() {
        for (numerator, denominator) in
            [(236, 10u64.pow(16)), (11, 10u64.pow(14)), (1, 10u64.pow(6)), (1, 3), (1, 1)]
        {
            let rate = BitErrorRate::new(numerator, denominator);
            for bytes in [0, 1, 64, 4160, 1 << 20] {
                let bit = numerator as f64 / denominator as f64;
                let expected = -f64::exp_m1(8.0 * bytes as f64 * f64::ln_1p(-bit.min(1.0 - 1e-16)));
                let found = rate.of_bytes(bytes) as f64 / ONE as f64;
                assert!(
                    (found - expected).abs() <= expected * 1e-4,
                    "{bit} {bytes}: {found}, not {expected}"
                );
            }
        }
        assert_eq!(BitErrorRate::new(0, 5), BitErrorRate::ZERO);
    }

    #[test]
    fn stuffed_words_are_behind_full_stretches() {
        let framing = Framing { header: 64, stuffing: 16, every: 256 };
        assert_eq!([0, 191, 192, 4096].map(|payload| framing.bytes(payload)), [64, 255, 272, 4160 + 16 * 16]);
        assert_eq!(Framing { stuffing: 0, ..framing }.bytes(4096), 4160);
    }
}
