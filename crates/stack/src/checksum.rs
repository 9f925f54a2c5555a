//! Checksums of IP, TCP, UDP and ICMP. The sender writes them and the receiver verifies them, in the host or its card.

use crate::frame::{ICMP, ICMPV6, IpPacket, Malformed, Parsed, TCP, TcpHeader, UDP};
use std::net::IpAddr;

/// Returns the sum of 16-bit words (RFC 1071) in native byte order. An incomplete last word is padded with zeros.
fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(4);
    let total: u64 =
        words.by_ref().map(|word| u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))).sum();
    let rest = words.remainder();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    total + u64::from(u32::from_ne_bytes(last))
}

/// Folds a sum into 16 bits by adding its carries. Returns it in network byte order.
fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::to_be(sum as u16)
}

/// Returns the sum of the pseudo-header, including the length of the payload. ICMP over IPv4 has no pseudo-header.
fn pseudo(ip: &IpPacket) -> u64 {
    let ends = match (ip.source, ip.destination) {
        _ if ip.protocol == ICMP => return 0,
        (IpAddr::V4(source), IpAddr::V4(destination)) => sum(&source.octets()) + sum(&destination.octets()),
        (IpAddr::V6(source), IpAddr::V6(destination)) => sum(&source.octets()) + sum(&destination.octets()),
        _ => 0,
    };
    ends + sum(&u32::from(ip.protocol).to_be_bytes()) + sum(&(ip.payload.len() as u32).to_be_bytes())
}

/// Returns the offset of the checksum field in the header of a protocol.
fn field(protocol: u8) -> Option<usize> {
    match protocol {
        TCP => Some(16),
        UDP => Some(6),
        ICMP | ICMPV6 => Some(2),
        _ => None,
    }
}

/// Whether the checksums of the IP header and of TCP, UDP or ICMP are right. UDP over IPv4 may have no checksum.
pub fn verify(frame: &[u8], ip: &IpPacket) -> bool {
    let header = &frame[ip.packet.start..ip.payload.start];
    if ip.source.is_ipv4() && folded(sum(header)) != 0xffff {
        return false;
    }
    let payload = &frame[ip.payload.clone()];
    match ip.protocol {
        UDP if ip.source.is_ipv4() && payload.get(6..8) == Some(&[0, 0]) => true,
        TCP | UDP | ICMP | ICMPV6 => folded(pseudo(ip) + sum(payload)) == 0xffff,
        _ => true,
    }
}

/// Writes the checksums of IPv4, TCP, UDP and ICMP into a frame, as a card with checksum offload does.
///
/// # Errors
/// [`Malformed`] if the frame has no such headers.
pub fn fill(frame: &mut [u8]) -> Result<(), Malformed> {
    let Some(ip) = Parsed::read(frame)?.ip else { return Err(Malformed::Header) };
    fill_ip(frame, &ip)
}

pub(crate) fn fill_ip(frame: &mut [u8], ip: &IpPacket) -> Result<(), Malformed> {
    if ip.source.is_ipv4() {
        let at = ip.packet.start + 10;
        frame[at..at + 2].fill(0);
        let sum = !folded(sum(&frame[ip.packet.start..ip.payload.start]));
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
    let mut sum = !folded(pseudo(ip) + sum(&frame[ip.payload.clone()]));
    if sum == 0 && ip.protocol == UDP {
        sum = 0xffff;
    }
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    Ok(())
}
