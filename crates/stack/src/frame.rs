//! Parses the headers of a frame: Ethernet II, an 802.1Q tag, IPv4 or IPv6, and TCP.
//!
//! Nothing is copied: a [`Parsed`] holds validated offsets into the frame.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// Bytes of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Bytes of an 802.1Q tag.
pub const TAG: usize = 4;
pub(crate) const IPV4: u16 = 0x0800;
pub(crate) const ARP: u16 = 0x0806;
pub(crate) const VLAN: u16 = 0x8100;
pub(crate) const IPV6: u16 = 0x86dd;
pub(crate) const ICMP: u8 = 1;
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMPV6: u8 = 58;
pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const PSH: u8 = 8;
pub(crate) const ACK: u8 = 16;

/// The reason why this stack cannot parse a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// The frame is shorter than its headers say.
    Truncated,
    /// A header has impossible values.
    Header,
}

/// The Ethernet header and its IP packet, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Destination and source MAC address.
    pub macs: ([u8; 6], [u8; 6]),
    /// The network's identifier in the 802.1Q tag, if the frame has a tag. 0 means that the tag has only a priority.
    pub vlan: Option<u16>,
    /// The EtherType, after the tag if there is one.
    pub ethertype: u16,
    /// Offset of the Ethernet payload.
    pub l3: usize,
    /// The IP packet, if the EtherType is IPv4 or IPv6.
    pub ip: Option<IpPacket>,
}

/// An IP packet in a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpPacket {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The protocol of the payload. For IPv6, the first header after the fixed header.
    pub protocol: u8,
    /// The range of the IP header and payload in the frame, without the frame's padding.
    pub packet: Range<usize>,
    /// The range of the payload in the frame.
    pub payload: Range<usize>,
    /// Whether this is a fragment of a longer packet.
    pub fragment: bool,
}

/// A TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHeader {
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number. It is valid only if the flag ACK is set.
    pub ack: u32,
    /// The lower eight flags.
    pub flags: u8,
    /// The window as transmitted, unscaled.
    pub window: u16,
    /// Bytes of the header with its options.
    pub length: usize,
}

/// Returns a 16-bit number in network order.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Returns a 32-bit number in network order.
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Returns `N` bytes at `at`. The caller has checked that they exist.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

impl Parsed {
    /// Reads the headers up to IP.
    ///
    /// # Errors
    /// [`Malformed`] for a frame that is too short for its headers, or a header with impossible values.
    pub fn read(frame: &[u8]) -> Result<Parsed, Malformed> {
        if frame.len() < ETHERNET {
            return Err(Malformed::Truncated);
        }
        let macs = (array(frame, 0), array(frame, 6));
        let (mut ethertype, mut l3, mut vlan) = (be16(frame, 12), ETHERNET, None);
        if ethertype == VLAN {
            if frame.len() < ETHERNET + TAG {
                return Err(Malformed::Truncated);
            }
            vlan = Some(be16(frame, 14) & 0xfff);
            ethertype = be16(frame, 16);
            l3 += TAG;
        }
        let ip = match ethertype {
            IPV4 => Some(read_v4(frame, l3)?),
            IPV6 => Some(read_v6(frame, l3)?),
            _ => None,
        };
        Ok(Parsed { macs, vlan, ethertype, l3, ip })
    }
}

fn read_v4(frame: &[u8], at: usize) -> Result<IpPacket, Malformed> {
    if frame.len() < at + 20 {
        return Err(Malformed::Truncated);
    }
    let header = usize::from(frame[at] & 0xf) * 4;
    let total = usize::from(be16(frame, at + 2));
    if frame[at] >> 4 != 4 || header < 20 || total < header {
        return Err(Malformed::Header);
    }
    if frame.len() < at + total {
        return Err(Malformed::Truncated);
    }
    Ok(IpPacket {
        source: Ipv4Addr::from(array::<4>(frame, at + 12)).into(),
        destination: Ipv4Addr::from(array::<4>(frame, at + 16)).into(),
        protocol: frame[at + 9],
        packet: at..at + total,
        payload: at + header..at + total,
        fragment: be16(frame, at + 6) & 0x3fff != 0,
    })
}

fn read_v6(frame: &[u8], at: usize) -> Result<IpPacket, Malformed> {
    if frame.len() < at + 40 {
        return Err(Malformed::Truncated);
    }
    if frame[at] >> 4 != 6 {
        return Err(Malformed::Header);
    }
    let end = at + 40 + usize::from(be16(frame, at + 4));
    if frame.len() < end {
        return Err(Malformed::Truncated);
    }
    Ok(IpPacket {
        source: Ipv6Addr::from(array::<16>(frame, at + 8)).into(),
        destination: Ipv6Addr::from(array::<16>(frame, at + 24)).into(),
        protocol: frame[at + 6],
        packet: at..end,
        payload: at + 40..end,
        fragment: frame[at + 6] == 44,
    })
}

impl TcpHeader {
    /// Reads a segment's header.
    ///
    /// # Errors
    /// [`Malformed`] for a segment that is too short for its header, or a header with impossible values.
    pub fn read(segment: &[u8]) -> Result<TcpHeader, Malformed> {
        if segment.len() < 20 {
            return Err(Malformed::Truncated);
        }
        let length = usize::from(segment[12] >> 4) * 4;
        if length < 20 {
            return Err(Malformed::Header);
        }
        if segment.len() < length {
            return Err(Malformed::Truncated);
        }
        Ok(TcpHeader {
            ports: (be16(segment, 0), be16(segment, 2)),
            seq: be32(segment, 4),
            ack: be32(segment, 8),
            flags: segment[13],
            window: be16(segment, 14),
            length,
        })
    }
}
