//! Checksums of IP, TCP and UDP: verified by whoever receives, filled in by whoever sends, the host or its card.

use crate::frame::{ICMPV6, IpPacket, Malformed, Parsed, TCP, TcpHeader, UDP};
use smoltcp::wire::{IpAddress, IpProtocol, checksum};

/// The sum of the pseudo-header, with the length of the payload.
fn pseudo(ip: &IpPacket) -> u16 {
    let (source, destination) = (IpAddress::from(ip.source), IpAddress::from(ip.destination));
    checksum::pseudo_header(&source, &destination, IpProtocol::from(ip.protocol), ip.payload.len() as u32)
}

/// Where the checksum is in the payload of a protocol.
fn field(protocol: u8) -> Option<usize> {
    match protocol {
        TCP => Some(16),
        UDP => Some(6),
        _ => None,
    }
}

/// Whether the checksums of the IP header and of TCP, UDP or ICMPv6 in it are right. A datagram over IPv4 may have
/// none.
pub fn verify(frame: &[u8], ip: &IpPacket) -> bool {
    let header = &frame[ip.packet.start..ip.payload.start];
    if ip.source.is_ipv4() && checksum::data(header) != 0xffff {
        return false;
    }
    let payload = &frame[ip.payload.clone()];
    match ip.protocol {
        UDP if ip.source.is_ipv4() && payload.get(6..8) == Some(&[0, 0]) => true,
        TCP | UDP | ICMPV6 => checksum::combine(&[pseudo(ip), checksum::data(payload)]) == 0xffff,
        _ => true,
    }
}

/// Writes the checksums of IPv4, TCP and UDP, as a card with checksum offload does.
///
/// # Errors
/// [`Malformed`], for a frame without these headers.
pub fn fill(frame: &mut [u8]) -> Result<(), Malformed> {
    let Some(ip) = Parsed::read(frame)?.ip else { return Err(Malformed::Header) };
    fill_ip(frame, &ip)
}

pub(crate) fn fill_ip(frame: &mut [u8], ip: &IpPacket) -> Result<(), Malformed> {
    if ip.source.is_ipv4() {
        let at = ip.packet.start + 10;
        frame[at..at + 2].fill(0);
        let sum = !checksum::data(&frame[ip.packet.start..ip.payload.start]);
        frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    let Some(field) = field(ip.protocol) else { return Ok(()) };
    if ip.protocol == TCP {
        TcpHeader::read(&frame[ip.payload.clone()])?;
    }
    let at = ip.payload.start + field;
    if ip.payload.len() < field + 2 {
        return Err(Malformed::Truncated);
    }
    frame[at..at + 2].fill(0);
    let mut sum = !checksum::combine(&[pseudo(ip), checksum::data(&frame[ip.payload.clone()])]);
    if sum == 0 && ip.protocol == UDP {
        sum = 0xffff;
    }
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    Ok(())
}
