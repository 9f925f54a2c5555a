//! Frames on an Ethernet link: addresses of stations, and the frame check sequence.

use nicety_fabric::HeaderBytes;
use nicety_stack::Parsed;
use nicety_types::NodeId;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length of the shortest frame in bytes, without its check sequence (IEEE 802.3, 4A.4.2).
pub(super) const SHORTEST: usize = 60;
/// Length in bytes of the check sequence. The model carries it in the header of a packet on the link.
pub(super) const CHECK_SEQUENCE: usize = 4;
/// The last rank with an address in 10.0.0.0/8. The network's last address is a broadcast.
const MOST_RANK: u32 = (1 << 24) - 3;

/// Returns the address of a node's station. It is locally administered, and contains the node's number.
pub fn station(node: NodeId) -> [u8; 6] {
    let [a, b, c, d] = node.0.to_be_bytes();
    [0x02, 0x00, a, b, c, d]
}

/// Returns the destination of a frame among `nodes` nodes, or `None` for groups and missing stations.
pub(super) fn destination(frame: &[u8], nodes: u32) -> Option<NodeId> {
    let [0x02, 0x00, a, b, c, d] = *frame.first_chunk()? else { return None };
    let node = u32::from_be_bytes([a, b, c, d]);
    (node < nodes).then_some(NodeId(node))
}

/// Returns the rank of the station at a frame's source address.
pub(super) fn sender(frame: &[u8]) -> Option<u32> {
    destination(frame.get(6..)?, u32::MAX).map(|node| node.0)
}

/// Returns the IPv4 address of a rank: 10.0.0.1 for rank 0, and so on.
pub fn ipv4(rank: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 1).to_bits() + rank)
}

/// Returns the IPv6 address of a rank: fd00::1 for rank 0, and so on.
pub fn ipv6(rank: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits((0xfd00_u128 << 112) + 1 + u128::from(rank))
}

/// Returns the rank of this address, in a network of maximum size.
pub(super) fn rank(address: IpAddr) -> Option<u32> {
    match address {
        IpAddr::V4(address) => {
            let rank = address.to_bits().checked_sub(ipv4(0).to_bits())?;
            (rank <= MOST_RANK).then_some(rank)
        }
        IpAddr::V6(address) => {
            let rank = u32::try_from(address.to_bits().checked_sub(ipv6(0).to_bits())?).ok()?;
            (rank <= MOST_RANK).then_some(rank)
        }
    }
}

/// The Ethernet type of ARP (RFC 826), and the IP protocols that carry no program data or resend it. These protocols
/// are IP options and control messages, IP groups, and TCP (IANA's protocol numbers).
const ARP: u16 = 0x0806;
const RECOVERED: [u8; 5] = [0, 1, 2, 6, 58];

/// Whether the hosts recover from the loss of a frame. TCP resends a segment, and the other protocols of `RECOVERED`
/// carry no program data.
pub(super) fn is_recovered(frame: &[u8]) -> bool {
    let Ok(parsed) = Parsed::read(frame) else { return false };
    match parsed.ip {
        Some(ip) => RECOVERED.contains(&ip.protocol),
        None => parsed.ethertype == ARP,
    }
}

/// Returns the frame check sequence: the CRC-32 of the frame, least significant byte first.
pub(super) fn check_sequence(frame: &[u8]) -> HeaderBytes {
    HeaderBytes::new(&crc32fast::hash(frame).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stations_are_nodes() {
        for node in [0, 1, 255, 256, 65_537] {
            assert_eq!(destination(&station(NodeId(node)), 70_000), Some(NodeId(node)));
        }
        assert_eq!(destination(&station(NodeId(4)), 4), None);
        assert_eq!(destination(&[0xff; 14], 4), None);
        assert_eq!(destination(&[2, 0], 4), None);
    }

    #[test]
    fn ranks_have_addresses() {
        assert_eq!([ipv4(0), ipv4(255)].map(|a| a.to_string()), ["10.0.0.1", "10.0.1.0"]);
        assert_eq!([ipv6(0), ipv6(9)].map(|a| a.to_string()), ["fd00::1", "fd00::a"]);
        for of in [0, 9, 70_000, MOST_RANK] {
            assert_eq!([ipv4(of).into(), ipv6(of).into()].map(rank), [Some(of); 2]);
        }
        for other in ["10.0.0.0", "10.255.255.255", "9.255.255.255", "fd00::", "fd00::1:0:0:1"] {
            assert_eq!(rank(other.parse().unwrap()), None, "{other}");
        }
    }

    #[test]
    fn datagrams_and_unknown_frames_are_not_recovered() {
        let frame = |kind: u16, rest: &[u8]| [&[2; 12][..], &kind.to_be_bytes(), rest].concat();
        let ip = |protocol: u8| {
            let mut packet = [0; 28];
            (packet[0], packet[3], packet[9]) = (0x45, 28, protocol);
            frame(0x0800, &packet)
        };
        for (protocol, recovered) in [(6, true), (1, true), (17, false), (47, false), (132, false)] {
            assert_eq!(is_recovered(&ip(protocol)), recovered, "{protocol}");
        }
        assert!(is_recovered(&frame(0x0806, &[0; 28])));
        assert!(!is_recovered(&frame(0x88b5, &[0; 46])) && !is_recovered(&frame(0x0800, &[0; 3])));
        assert!(!is_recovered(&[]));
    }

    #[test]
    fn the_check_sequence_is_that_of_ethernet() {
        // The CRC-32 of "123456789" is 0xcbf43926.
        assert_eq!(check_sequence(b"123456789").as_slice(), [0x26, 0x39, 0xf4, 0xcb]);
    }
}
