//! The form of a packet: an Ethernet frame, or the frame's IP packet in PsPIN's byte order.

use crate::checksum::{checksum, sum_of};

/// The form in which handlers get a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The Ethernet frame, from its destination address on.
    #[default]
    Frame,
    /// The IP packet of the frame. The fields of an IPv4 header, and of a UDP header after it, have the byte order of a
    /// little-endian core. In the first byte, the two halves are exchanged: the version is in the lower half. All other
    /// bytes are as on the wire. Source: PsPIN's `packets.h`, and the packets that its driver makes.
    Packet,
}

/// Bytes of Ethernet's header without tags.
const ETHERNET: usize = 14;
/// Bytes of a VLAN tag, and the EtherTypes that announce a tag.
const TAG: usize = 4;
const TAGS: [u16; 2] = [0x8100, 0x88a8];
/// The EtherType of IPv4.
const IP: u16 = 0x0800;
/// Bytes of an IPv4 header without options.
const IP_HEADER: usize = 20;
/// The protocol number of UDP, and the bytes of its header.
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

impl Form {
    /// Returns the maximum length of a packet in bytes.
    pub(crate) const fn most(self) -> u64 {
        match self {
            Form::Frame => u64::MAX,
            Form::Packet => u16::MAX as u64,
        }
    }

    /// Returns the number of bytes before the packet in a frame that a template makes.
    pub(crate) const fn in_front(self) -> u64 {
        match self {
            Form::Frame => 0,
            Form::Packet => ETHERNET as u64,
        }
    }

    /// Returns the number of bytes before the packet in any frame. This number includes VLAN tags.
    pub(crate) fn in_front_of(self, frame: &[u8]) -> usize {
        let mut at = self.in_front() as usize;
        while at > 0 && TAGS.contains(&half(frame, at - 2)) && at + TAG <= frame.len() {
            at += TAG;
        }
        at
    }

    /// Converts a frame to this form. If the form is the IP packet and no byte follows the Ethernet header, the result
    /// is empty.
    pub(crate) fn take(self, frame: &mut Vec<u8>) {
        if self == Form::Frame {
            return;
        }
        let at = self.in_front_of(frame);
        let is_ip = half(frame, at - 2) == IP;
        frame.drain(..at.min(frame.len()));
        if is_ip {
            in_core_order(frame);
        }
    }
}

/// Returns two bytes of a packet as a big-endian number, or 0 if they are beyond the packet's end.
fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |two| u16::from_be_bytes([two[0], two[1]]))
}

/// Converts the headers of an IPv4 packet to the byte order of the cores, and removes the padding after the packet.
/// Does not change other packets.
fn in_core_order(packet: &mut Vec<u8>) {
    let header = packet.first().map_or(0, |first| usize::from(first & 0xf) * 4);
    // A captured packet has the length 0 if the card segments it later, or has coalesced it.
    let length = match half(packet, 2) {
        0 => packet.len(),
        length => usize::from(length),
    };
    let is_4 = packet.first().is_some_and(|first| first >> 4 == 4);
    if !is_4 || header < IP_HEADER || length.min(packet.len()) < header {
        return;
    }
    packet.truncate(length);
    // Only the first fragment of a packet has a UDP header.
    let is_first = half(packet, 6) & 0x1fff == 0;
    let has_udp = packet[9] == UDP && is_first && packet.len() >= header + UDP_HEADER;
    turn(packet, header, has_udp);
}

/// Reverses the bytes in each field of an IP header with `header` bytes. If `has_udp`, does the same in the UDP header
/// after it.
fn turn(packet: &mut [u8], header: usize, has_udp: bool) {
    packet[0] = packet[0].rotate_left(4);
    for at in [2, 4, 6, 10] {
        packet[at..at + 2].reverse();
    }
    for at in [12, 16] {
        packet[at..at + 4].reverse();
    }
    if has_udp {
        packet[header..header + UDP_HEADER].chunks_exact_mut(2).for_each(<[u8]>::reverse);
    }
}

/// Returns the IPv4 and UDP headers of a packet of `bytes` bytes, in the byte order of the cores. The packet's source
/// is port 49152 of 198.18.0.1, and its destination port 9 of 198.19.0.1.
pub fn core_order_header(bytes: u64) -> [u8; IP_HEADER + UDP_HEADER] {
    let length = u16::try_from(bytes).unwrap_or(u16::MAX);
    let mut header = [0; IP_HEADER + UDP_HEADER];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    // The don't-fragment bit.
    header[6] = 0x40;
    header[8..10].copy_from_slice(&[64, UDP]);
    header[12..20].copy_from_slice(&[198, 18, 0, 1, 198, 19, 0, 1]);
    let sum = checksum(sum_of(&header[..IP_HEADER]));
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header[20..22].copy_from_slice(&49152u16.to_be_bytes());
    header[22..24].copy_from_slice(&9u16.to_be_bytes());
    header[24..26].copy_from_slice(&length.saturating_sub(IP_HEADER as u16).to_be_bytes());
    turn(&mut header, IP_HEADER, true);
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Traffic;
    use proptest::prelude::*;

    fn made(text: &str, count: usize) -> Vec<Vec<u8>> {
        let mut stream = Traffic::parse(text).unwrap().formed(Form::Packet).open(1, 2048).unwrap();
        let make = |_| {
            let mut packet = Vec::new();
            stream.next_frame(&mut packet).unwrap().unwrap();
            packet
        };
        (0..count).map(make).collect()
    }

    fn taken(frame: &[u8]) -> Vec<u8> {
        let mut packet = frame.to_vec();
        Form::Packet.take(&mut packet);
        packet
    }

    /// Returns a frame with these VLAN tags, this EtherType and these bytes.
    fn frame(tags: &[u16], kind: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![7; 12];
        for tag in tags {
            frame.extend([tag.to_be_bytes(), [0, 5]].concat());
        }
        frame.extend(kind.to_be_bytes());
        frame.extend(packet);
        frame
    }

    #[test]
    fn a_made_packet_is_what_its_header_says() {
        for packet in made("udp src=10.1.2.3 dst=10.4.5.6 sport=1111 dport=2222 size=100", 3) {
            let at = |at: usize| u16::from_le_bytes([packet[at], packet[at + 1]]);
            assert_eq!((packet.len(), packet[0], packet[9]), (100, 0x54, 17));
            assert_eq!((at(2), at(20), at(22), at(24)), (100, 1111, 2222, 80));
            assert_eq!((&packet[12..16], &packet[16..20]), (&[3, 2, 1, 10][..], &[6, 5, 4, 10][..]));
        }
        assert_eq!(made("udp size=28", 1)[0].len(), 28);
        // In this form, IMIX has the sizes of IP packets. The fields of IPv6 and TCP are not reversed.
        let lengths = |text| made(text, 300).iter().map(Vec::len).collect::<std::collections::BTreeSet<_>>();
        assert_eq!(lengths("imix").into_iter().collect::<Vec<_>>(), [40, 576, 1500]);
        assert_eq!(lengths("udp ip6 imix").into_iter().collect::<Vec<_>>(), [48, 576, 1500]);
        assert_eq!(lengths("size=64-66").into_iter().collect::<Vec<_>>(), [64, 65, 66]);
        assert_eq!(made("udp ip6 size=70", 1)[0][..7], [0x60, 0, 0, 0, 0, 30, 17]);
        assert_eq!(made("tcp dport=53 size=60", 1)[0][22..24], [0, 53]);
    }

    #[test]
    fn the_header_of_equal_packets_is_as_a_made_one() {
        assert_eq!(core_order_header(333), made("udp size=333", 1)[0][..28]);
    }

    #[test]
    fn only_what_has_a_header_of_ip_is_turned_round() {
        let ip = |first: u8, length: u16, protocol: u8, fragment: u16| {
            let mut packet: Vec<u8> = (0..46).collect();
            packet[0] = first;
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            packet[6..8].copy_from_slice(&fragment.to_be_bytes());
            packet[9] = protocol;
            packet
        };
        let ports = |packet: &[u8], at: usize| packet[at..at + 4].to_vec();
        for tags in [&[][..], &[0x8100], &[0x88a8, 0x8100]] {
            let packet = taken(&frame(tags, IP, &ip(0x45, 40, 17, 0x2000)));
            // The padding has been removed.
            assert_eq!((packet.len(), packet[0], &packet[2..4]), (40, 0x54, &[40, 0][..]));
            assert_eq!((ports(&packet, 20), &packet[28..]), (vec![21, 20, 23, 22], &ip(0, 0, 0, 0)[28..40]));
        }
        // After IP options, the UDP header begins later. A later fragment and a TCP segment have no UDP header.
        assert_eq!(ports(&taken(&frame(&[], IP, &ip(0x46, 46, 17, 0))), 20), [20, 21, 22, 23]);
        assert_eq!(ports(&taken(&frame(&[], IP, &ip(0x46, 46, 17, 0))), 24), [25, 24, 27, 26]);
        assert_eq!(ports(&taken(&frame(&[], IP, &ip(0x45, 46, 17, 1))), 20), [20, 21, 22, 23]);
        assert_eq!(ports(&taken(&frame(&[], IP, &ip(0x45, 46, 6, 0))), 20), [20, 21, 22, 23]);
        // The length field is 0, as in a packet that the card segments.
        let segment = taken(&frame(&[], IP, &ip(0x45, 0, 17, 0)));
        assert_eq!((segment.len(), segment[0], ports(&segment, 20)), (46, 0x54, vec![21, 20, 23, 22]));
        for (kind, first, length) in [(0x0806, 0x45, 46), (IP, 0x55, 46), (IP, 0x44, 46), (IP, 0x45, 19)] {
            let packet = ip(first, length, 17, 0);
            assert_eq!(taken(&frame(&[], kind, &packet)), packet, "{kind:x} {first:x} {length}");
        }
        assert_eq!(taken(&frame(&[], IP, &[])), []);
        assert_eq!(taken(&frame(&[0x8100], IP, &[])), []);
    }

    proptest! {
        #[test]
        fn any_frame_is_taken_and_nothing_behind_the_headers_changes(
            kind in prop::sample::select(vec![IP, 0x8100, 0x86dd]), bytes in prop::collection::vec(any::<u8>(), 0..120)
        ) {
            let frame = frame(&[], kind, &bytes);
            let packet = taken(&frame);
            prop_assert!(packet.len() <= bytes.len());
            let mut as_frame = frame.clone();
            Form::Frame.take(&mut as_frame);
            prop_assert_eq!(&as_frame, &frame);
            if kind == IP && bytes.first().is_some_and(|first| first >> 4 == 4) {
                let behind = usize::from(bytes[0] & 0xf) * 4 + UDP_HEADER;
                if let Some(rest) = packet.get(behind..) {
                    prop_assert_eq!(rest, &bytes[behind..packet.len()]);
                }
            }
        }
    }
}
