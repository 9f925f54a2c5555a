//! Reads and writes requests and replies of ARP (RFC 826) and neighbour discovery (RFC 4861).

use crate::checksum::fill_ip;
use crate::frame::{ARP, ICMPV6, IPV6, be16};
use crate::header::{packet_in, write_ip};
use crate::link::{BROADCAST, Link, group_mac, solicited};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Ethernet and IPv4, with addresses of 6 and 4 bytes.
const ARP_KIND: [u8; 6] = [0, 1, 8, 0, 6, 4];
const SOLICIT: u8 = 135;
const ADVERTISE: u8 = 136;
/// The flags of a solicited advertisement that overrides an earlier link address.
const SOLICITED: u8 = 0x60;

/// A request or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<A> {
    pub is_question: bool,
    /// The sender's IP address. In neighbour discovery, it is the source address of the packet.
    pub from: A,
    pub mac: Option<[u8; 6]>,
    /// The IP address that a request asks for, or that a reply is about.
    pub target: A,
}

/// Returns the MAC address at an offset of a packet. The caller has checked that the packet is long enough.
fn mac_at(bytes: &[u8], at: usize) -> [u8; 6] {
    std::array::from_fn(|n| bytes[at + n])
}

fn v4_at(bytes: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
}

/// Reads an ARP packet.
pub(crate) fn read_arp(packet: &[u8]) -> Option<Message<Ipv4Addr>> {
    let operation =
        packet.get(..28).filter(|packet| packet[..6] == ARP_KIND).map(|packet| be16(packet, 6))?;
    (1..=2).contains(&operation).then(|| Message {
        is_question: operation == 1,
        mac: Some(mac_at(packet, 8)),
        from: v4_at(packet, 14),
        target: v4_at(packet, 24),
    })
}

/// Reads a neighbour solicitation or advertisement from `from`. `body` begins with ICMPv6's type.
pub(crate) fn read_ndp(from: Ipv6Addr, body: &[u8]) -> Option<Message<Ipv6Addr>> {
    if body.len() < 24 || body[1] != 0 {
        return None;
    }
    let is_question = body[0] == SOLICIT;
    let target: [u8; 16] = std::array::from_fn(|n| body[8 + n]);
    let mut message = Message { is_question, from, mac: None, target: target.into() };
    // A request has an option with the sender's link address, a reply with the target's.
    let wanted = if is_question { 1 } else { 2 };
    let mut options = &body[24..];
    while let [kind, units, ..] = options {
        let length = usize::from(*units) * 8;
        if length == 0 || length > options.len() {
            return None;
        }
        if *kind == wanted && length == 8 {
            message.mac = Some(mac_at(options, 2));
        }
        options = &options[length..];
    }
    options.is_empty().then_some(message)
}

/// Whether this ICMPv6 type is a neighbour solicitation or a neighbour advertisement.
pub(crate) fn is_ndp(kind: u8) -> bool {
    kind == SOLICIT || kind == ADVERTISE
}

fn arp(link: Link, is_question: bool, own: Ipv4Addr, mac: [u8; 6], to: Ipv4Addr) -> Vec<u8> {
    let mut frame = Vec::with_capacity(link.room() + 28);
    link.begin(&mut frame, 0);
    link.address(&mut frame, mac, ARP);
    frame.extend_from_slice(&ARP_KIND);
    frame.extend_from_slice(&[0, if is_question { 1 } else { 2 }]);
    frame.extend_from_slice(&link.mac);
    frame.extend_from_slice(&own.octets());
    // In a request, the target's link address is unknown and zero.
    frame.extend_from_slice(&if is_question { [0; 6] } else { mac });
    frame.extend_from_slice(&to.octets());
    frame
}

fn ndp(link: Link, own: Ipv6Addr, to: Ipv6Addr, mac: [u8; 6], kind: u8, target: Ipv6Addr) -> Vec<u8> {
    let (flags, option) = if kind == SOLICIT { (0, 1) } else { (SOLICITED, 2) };
    let mut frame = Vec::with_capacity(link.room() + 72);
    link.begin(&mut frame, 0);
    link.address(&mut frame, mac, IPV6);
    write_ip(&mut frame, own.into(), to.into(), ICMPV6, 32);
    // RFC 4861, 7.1: a hop limit of 255 shows that no router has forwarded the packet.
    frame[link.room() + 7] = 255;
    frame.extend_from_slice(&[kind, 0, 0, 0, flags, 0, 0, 0]);
    frame.extend_from_slice(&target.octets());
    frame.extend_from_slice(&[option, 1]);
    frame.extend_from_slice(&link.mac);
    let packet = packet_in(&frame, link.room(), own.into(), to.into(), ICMPV6);
    let filled = fill_ip(&mut frame, &packet);
    debug_assert!(filled.is_ok());
    frame
}

/// Returns a request for the link address of `address`. `own` is the host's address of the same family.
pub(crate) fn question(link: Link, own: IpAddr, address: IpAddr) -> Vec<u8> {
    match (own, address) {
        (IpAddr::V4(own), IpAddr::V4(address)) => arp(link, true, own, BROADCAST, address),
        (IpAddr::V6(own), IpAddr::V6(address)) => {
            let group = solicited(address);
            ndp(link, own, group, group_mac(group), SOLICIT, address)
        }
        _ => unreachable!("addresses of one family"),
    }
}

/// Returns the reply to a station that has requested the link address of this host.
pub(crate) fn answer(link: Link, own: IpAddr, mac: [u8; 6], to: IpAddr) -> Vec<u8> {
    match (own, to) {
        (IpAddr::V4(own), IpAddr::V4(to)) => arp(link, false, own, mac, to),
        (IpAddr::V6(own), IpAddr::V6(to)) => ndp(link, own, to, mac, ADVERTISE, own),
        _ => unreachable!("addresses of one family"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link { mac: [2, 0, 0, 0, 0, 1], vlan: None };

    #[test]
    fn arp_is_as_in_its_standard() {
        let (own, other) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let frame = question(LINK, own.into(), other.into());
        let mut expect = vec![0xff; 6];
        expect.extend([2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1]);
        expect.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
        assert_eq!(frame, expect);
        let message = Message { is_question: true, from: own, mac: Some(LINK.mac), target: other };
        assert_eq!(read_arp(&frame[14..]), Some(message));
        assert_eq!(read_arp(&frame[14..41]), None);
        for (at, value) in [(14, 9), (18, 5), (21, 3)] {
            let mut other = frame.clone();
            other[at] = value;
            assert_eq!(read_arp(&other[14..]), None, "{at}");
        }
    }

    #[test]
    fn neighbour_discovery_is_read_as_written() {
        let (own, other) =
            (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
        let asked = question(LINK, own.into(), other.into());
        let message = Message { is_question: true, from: own, mac: Some(LINK.mac), target: other };
        assert_eq!(read_ndp(own, &asked[54..]), Some(message));
        let answered = answer(LINK, own.into(), [2, 0, 0, 0, 0, 2], other.into());
        let message = Message { is_question: false, target: own, ..message };
        assert_eq!(read_ndp(own, &answered[54..]), Some(message));
        for end in [54, 77, 79, 85] {
            assert_eq!(read_ndp(own, &asked[54..end]), None, "{end}");
        }
        assert_eq!(read_ndp(own, &asked[54..78]).and_then(|message| message.mac), None);
    }
}
