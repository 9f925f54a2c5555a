//! Makes frames from a template. The flow determines the headers, a distribution the size; the payload is random.

use crate::checksum::{checksum, sum_of};
use crate::expression::{Popularity, Protocol, Sizes, Template};
use crate::zipf::Zipf;
use nicety_kernel::Rng;
use nicety_types::NodeId;

/// The destination and the source MAC address, both locally administered.
const STATIONS: [u8; 12] = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
/// Number of random bytes from which payloads are copied. It is a power of two.
const RANDOM: usize = 1 << 16;
/// Bytes of the longest headers: Ethernet, IP version 6 and TCP.
const LONGEST_HEADERS: usize = 74;

/// A maker of frames. Its memory does not depend on the number of flows or frames.
pub(crate) struct Maker {
    template: Template,
    zipf: Option<Zipf>,
    /// The sum of the weights of all sizes.
    weights: u64,
    /// A flow has the header with the number `flow * step + first`, modulo the number of all headers. So consecutive
    /// flows do not have consecutive headers.
    step: u128,
    first: u128,
    headers: u128,
    random: Vec<u8>,
    made: u64,
    /// Number of payload bytes in the frames so far.
    sent: u64,
    flows: Rng,
    sizes: Rng,
}

impl Template {
    /// Returns the number of different headers.
    pub(crate) fn headers(&self) -> u128 {
        let parts = [self.src.count(), self.dst.count(), self.sport.count(), self.dport.count()];
        parts.into_iter().map(u128::from).product()
    }

    /// Whether the template's frames are IPv6.
    pub(crate) const fn is_ip6(&self) -> bool {
        self.src.first.is_ipv6()
    }
}

/// The addresses and ports of a frame.
struct Endpoints {
    source: u128,
    source_port: u16,
    destination: u128,
    destination_port: u16,
}

impl Maker {
    pub(crate) fn new(template: Template, largest: u64, seed: u64) -> Maker {
        let rng = |name| Rng::named(seed, NodeId(0), name);
        let headers = template.headers();
        let mut order = rng("traffic flow order");
        // The step is about 0.618 times the number of headers (golden section). Step and number have no common divisor.
        let mut step = match headers.checked_mul(618_033_988) {
            Some(product) => (product / 1_000_000_000).max(1),
            None => headers / 1_000_000_000 * 618_033_988,
        };
        while divisor(step, headers) != 1 {
            step += 1;
        }
        let first = u128::from(order.next_u64()) % headers;
        let zipf = match template.popularity {
            Popularity::Uniform => None,
            Popularity::Zipf(exponent) => Some(Zipf::new(template.flows, exponent)),
        };
        let weights = match &template.sizes {
            Sizes::Weighted(sizes) => sizes.iter().map(|(_, weight)| weight).sum(),
            Sizes::Range(..) => 0,
        };
        let mut random = vec![0; RANDOM + largest as usize];
        rng("traffic payload").fill(&mut random);
        let (flows, sizes) = (rng("traffic flows"), rng("traffic sizes"));
        Maker { template, zipf, weights, step, first, headers, random, made: 0, sent: 0, flows, sizes }
    }

    /// Draws the flow of the next frame. Returns its addresses and ports.
    fn endpoints(&mut self) -> Endpoints {
        let flow = match &self.zipf {
            Some(zipf) => zipf.draw(&mut self.flows),
            None if self.template.flows == 1 => 0,
            None => self.flows.below(self.template.flows),
        };
        let Template { src, dst, sport, dport, .. } = &self.template;
        let mut number = (times(flow, self.step, self.headers) + self.first) % self.headers;
        let mut part = |count: u64| {
            let digit = number % u128::from(count);
            number /= u128::from(count);
            digit as u64
        };
        let source = src.number(part(src.count()));
        let source_port = sport.first + part(sport.count()) as u16;
        let destination = dst.number(part(dst.count()));
        let destination_port = dport.first + part(dport.count()) as u16;
        Endpoints { source, source_port, destination, destination_port }
    }

    /// Makes the next frame.
    pub(crate) fn make(&mut self, frame: &mut Vec<u8>) {
        let size = self.size() as usize;
        let Endpoints { source, source_port, destination, destination_port } = self.endpoints();
        let protocol = self.template.protocol;
        let (udp, ip6) = (protocol == Protocol::Udp, self.template.is_ip6());
        let number = if udp { 17 } else { 6 };
        let mut head = [0u8; LONGEST_HEADERS];
        head[..12].copy_from_slice(&STATIONS);
        // The offset of the IP addresses, and the offset after them.
        let (addresses, transport) = if ip6 { (22, 54) } else { (26, 34) };
        if ip6 {
            head[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
            head[18..20].copy_from_slice(&((size - transport) as u16).to_be_bytes());
            head[20..22].copy_from_slice(&[number, 64]);
            head[22..38].copy_from_slice(&source.to_be_bytes());
            head[38..54].copy_from_slice(&destination.to_be_bytes());
        } else {
            head[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0]);
            head[16..18].copy_from_slice(&((size - 14) as u16).to_be_bytes());
            head[18..20].copy_from_slice(&(self.made as u16).to_be_bytes());
            head[20] = 0x40;
            head[22..24].copy_from_slice(&[64, number]);
            head[26..30].copy_from_slice(&(source as u32).to_be_bytes());
            head[30..34].copy_from_slice(&(destination as u32).to_be_bytes());
            let sum = checksum(sum_of(&head[14..34]));
            head[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        let own = &mut head[transport..];
        own[..2].copy_from_slice(&source_port.to_be_bytes());
        own[2..4].copy_from_slice(&destination_port.to_be_bytes());
        if udp {
            own[4..6].copy_from_slice(&((size - transport) as u16).to_be_bytes());
        } else {
            // Sequence numbers continue across flows. So no segment repeats the sequence numbers of an earlier segment,
            // and the maker stores no state of flows.
            own[4..8].copy_from_slice(&(self.sent as u32).to_be_bytes());
            own[12..16].copy_from_slice(&[0x50, 0x10, 0xff, 0xff]);
        }
        let headers = protocol.headers(ip6) as usize;
        frame.clear();
        frame.extend_from_slice(&head[..headers]);
        let at = (self.made as usize).wrapping_mul(29) % RANDOM;
        frame.extend_from_slice(&self.random[at..at + size - headers]);
        // The UDP checksum is optional over IPv4: 0 means none. Over IPv6 it is required, and a sum of 0 is written as 0xffff.
        if !udp || ip6 {
            let segment = &frame[transport..];
            let pseudo = sum_of(&frame[addresses..transport]) + u64::from(number) + segment.len() as u64;
            let sum = match checksum(pseudo + sum_of(segment)) {
                0 if udp => 0xffff,
                sum => sum,
            };
            let at = transport + if udp { 6 } else { 16 };
            frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        }
        self.made += 1;
        self.sent += (size - headers) as u64;
    }

    fn size(&mut self) -> u64 {
        match &self.template.sizes {
            Sizes::Range(first, last) => first + self.sizes.below(last - first + 1),
            Sizes::Weighted(sizes) if sizes.len() == 1 => sizes[0].0,
            Sizes::Weighted(sizes) => {
                let mut drawn = self.sizes.below(self.weights);
                for (size, weight) in sizes {
                    match drawn.checked_sub(*weight) {
                        None => return *size,
                        Some(rest) => drawn = rest,
                    }
                }
                unreachable!("less was drawn than all weights together")
            }
        }
    }
}

/// Returns `flow * step` modulo a number of at most 112 bits. Both factors may be near the modulus.
fn times(flow: u64, step: u128, modulus: u128) -> u128 {
    match u128::from(flow).checked_mul(step) {
        Some(product) => product % modulus,
        None => times_by_digits(flow, step % modulus, modulus),
    }
}

/// As [`times`], but multiplies 16 bits of `flow` at a time.
fn times_by_digits(flow: u64, step: u128, modulus: u128) -> u128 {
    [48, 32, 16, 0].into_iter().fold(0, |product, shift| {
        let digit = u128::from(flow >> shift & 0xffff);
        ((product << 16) % modulus + digit * step % modulus) % modulus
    })
}

fn divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, Traffic};
    use std::collections::{BTreeMap, BTreeSet};

    fn maker(text: &str) -> Maker {
        let Source::Template(template) = Traffic::parse(text).unwrap().source else { panic!("{text}") };
        Maker::new(template, 1518, 7)
    }

    fn frames(text: &str, count: usize) -> Vec<Vec<u8>> {
        let mut maker = maker(text);
        let make = |_| {
            let mut frame = Vec::new();
            maker.make(&mut frame);
            frame
        };
        (0..count).map(make).collect()
    }

    #[test]
    fn frames_are_valid() {
        for (text, ip6, protocol) in [
            ("udp sport=1-9 size=61", false, 17),
            ("tcp src=10.0.0.0/8 size=333 flows=100", false, 6),
            ("udp src=2001:db8::/32 flows=100 size=62", true, 17),
            ("udp ip6 size=333 sport=1-9", true, 17),
            ("tcp dst=2001:db8::/64 flows=7 size=75", true, 6),
        ] {
            for frame in frames(text, 20) {
                let length = |at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
                let (next, addresses, segment) = match ip6 {
                    false => (frame[23], &frame[26..34], &frame[34..]),
                    true => (frame[20], &frame[22..54], &frame[54..]),
                };
                assert_eq!(next, protocol);
                match ip6 {
                    false => {
                        assert_eq!((&frame[12..15], length(16)), (&[8, 0, 0x45][..], frame.len() - 14));
                        assert_eq!(checksum(sum_of(&frame[14..34])), 0);
                    }
                    true => {
                        assert_eq!((&frame[12..15], length(18)), (&[0x86, 0xdd, 0x60][..], frame.len() - 54));
                    }
                }
                if protocol == 17 {
                    assert_eq!(usize::from(u16::from_be_bytes([segment[4], segment[5]])), segment.len());
                    // UDP over IPv4 has no checksum here. UDP over IPv6 always has one.
                    assert_eq!(segment[6..8] == [0, 0], !ip6);
                }
                if protocol == 6 || ip6 {
                    let pseudo = sum_of(addresses) + u64::from(protocol) + segment.len() as u64;
                    assert_eq!(checksum(pseudo + sum_of(segment)), 0);
                }
            }
        }
    }

    #[test]
    fn no_segment_has_the_sequence_numbers_of_one_before_it() {
        let mut next = 0u32;
        for frame in frames("tcp flows=3 sport=1-9 size=54-1514", 300) {
            let sequence = u32::from_be_bytes(frame[38..42].try_into().unwrap());
            assert_eq!(sequence, next);
            next = next.wrapping_add(frame.len() as u32 - 54);
        }
    }

    #[test]
    fn a_large_network_of_version_6_gives_flows_all_over_it() {
        let mut sources = BTreeSet::new();
        for frame in frames("udp src=2001:db8::/32 flows=1M", 2000) {
            assert_eq!(frame[22..26], [0x20, 1, 0x0d, 0xb8]);
            sources.insert(frame[22..38].to_vec());
        }
        // 2000 frames draw from a million flows, so nearly all sources differ, and they differ in each byte.
        assert!(sources.len() > 1990, "{}", sources.len());
        for byte in 4..16 {
            let values: BTreeSet<u8> = sources.iter().map(|source| source[byte]).collect();
            assert!(values.len() > 200, "byte {byte} has {} values", values.len());
        }
    }

    #[test]
    fn flows_of_the_largest_networks_differ() {
        let mut maker = maker("udp src=::/0 dst=::/0 sport=0-65535 dport=0-65535");
        let headers: BTreeSet<u128> =
            (0..1000).map(|flow| times((1 << 40) - 1 - flow, maker.step, maker.headers)).collect();
        assert_eq!(headers.len(), 1000);
        for _ in 0..100 {
            maker.make(&mut Vec::new());
        }
        for (flow, step, modulus) in
            [(u64::MAX, 12_345, 1 << 60), ((1 << 40) - 3, (1 << 80) + 7, (1 << 87) - 1)]
        {
            let plain = u128::from(flow) * step % modulus;
            assert_eq!(times_by_digits(flow, step % modulus, modulus), plain);
        }
    }

    #[test]
    fn there_are_as_many_flows_as_asked_for_each_with_its_own_header() {
        let keys = |text: &str, count| -> BTreeMap<Vec<u8>, u32> {
            let mut keys = BTreeMap::new();
            for frame in frames(text, count) {
                *keys.entry(frame[26..38].to_vec()).or_default() += 1;
            }
            keys
        };
        let uniform = keys("udp src=10.0.0.0/28 sport=1-10 dport=53 flows=100", 10_000);
        assert_eq!(uniform.len(), 100);
        assert!(uniform.values().all(|&count| (50..170).contains(&count)));
        assert!(uniform.keys().all(|key| key[..3] == [10, 0, 0] && key[3] < 16 && key[10..] == [0, 53]));
        // Without `flows`, each header is a flow.
        assert_eq!(keys("udp src=10.0.0.0/28 sport=1-10", 10_000).len(), 160);
        let zipf = keys("udp src=10.0.0.0/16 flows=1k zipf=1.2", 10_000);
        let most = zipf.values().max().unwrap();
        // With 1000 flows, the flow of rank 1 has a share of 1 / 4.33.
        assert!((2_100..2_500).contains(most), "{most}");
    }

    #[test]
    fn sizes_are_as_often_as_their_weights() {
        let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
        for frame in frames("imix", 12_000) {
            *counts.entry(frame.len()).or_default() += 1;
        }
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [60, 590, 1514]);
        assert!((6_800..7_200).contains(&counts[&60]) && (900..1_100).contains(&counts[&1514]), "{counts:?}");
        let sizes: BTreeSet<usize> = frames("udp size=64-70", 200).iter().map(Vec::len).collect();
        assert_eq!(sizes, (64..=70).collect());
    }
}
