//! Hashes of a frame's connection, which distribute connections to channels and to soft rings.

use nicety_spec::Section;
use nicety_stack::{IpPacket, Parsed, Toeplitz};
use std::net::IpAddr;

/// A hash of a frame's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowHash {
    /// The Toeplitz hash of addresses and ports, with the key that drivers use.
    Toeplitz,
    /// Exclusive or of the four bytes of both ports. The values of consecutive ports differ.
    Ports,
    /// The CRC-32C of addresses, ports and protocol.
    Crc,
}

/// Protocols with ports.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// The polynomial of CRC-32C, the highest power first.
const POLYNOMIAL: u32 = 0x1EDC_6F41;

impl FlowHash {
    /// Reads the hash of a section.
    pub(super) fn read(s: &Section<'_>, words: &[&'static str], doc: &str) -> FlowHash {
        match s.choice_or("hash", words, "toeplitz", doc) {
            "ports" => FlowHash::Ports,
            "crc" => FlowHash::Crc,
            _ => FlowHash::Toeplitz,
        }
    }

    /// Returns the hash of a frame, or 0 if the frame has no IP packet.
    pub(super) fn of(self, toeplitz: &Toeplitz, frame: &[u8]) -> usize {
        let ip = || Parsed::read(frame).ok().and_then(|parsed| parsed.ip);
        match self {
            FlowHash::Toeplitz => toeplitz.frame(frame).unwrap_or(0) as usize,
            FlowHash::Ports => {
                ip().map_or(0, |ip| ports(frame, &ip).iter().fold(0, |hash, byte| hash ^ byte)).into()
            }
            FlowHash::Crc => ip().map_or(0, |ip| crc(&key(frame, &ip))) as usize,
        }
    }
}

/// Returns the bytes of both ports, or no bytes for a packet without ports.
fn ports<'f>(frame: &'f [u8], ip: &IpPacket) -> &'f [u8] {
    let has_ports = !ip.fragment && matches!(ip.protocol, TCP | UDP) && ip.payload.len() >= 4;
    if has_ports { &frame[ip.payload.start..ip.payload.start + 4] } else { &[] }
}

fn key(frame: &[u8], ip: &IpPacket) -> Vec<u8> {
    let mut key = Vec::with_capacity(37);
    for address in [ip.source, ip.destination] {
        match address {
            IpAddr::V4(address) => key.extend(address.octets()),
            IpAddr::V6(address) => key.extend(address.octets()),
        }
    }
    key.extend(ports(frame, ip));
    key.push(ip.protocol);
    key
}

/// Returns the CRC-32C of bytes, without inversions, the highest bit of a byte first.
fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |crc: u32, &byte| {
        (0..8).fold(crc ^ u32::from(byte) << 24, |crc, _| {
            crc << 1 ^ if crc >> 31 == 1 { POLYNOMIAL } else { 0 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    /// Returns an Ethernet frame with a TCP header from this port to port 80.
    fn frame(port: u16) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([8, 0]);
        let mut ip = vec![0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, TCP, 0, 0];
        ip.extend(Ipv4Addr::new(10, 0, 0, 1).octets());
        ip.extend(Ipv4Addr::new(10, 0, 0, 2).octets());
        let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let sum = !((sum >> 16) + (sum & 0xFFFF)) as u16;
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        frame.extend(ip);
        frame.extend(port.to_be_bytes());
        frame.extend(80u16.to_be_bytes());
        frame.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
        frame
    }

    #[test]
    fn ports_are_combined_byte_by_byte() {
        // The expected value is 0xC0 ^ 0x05 ^ 0x00 ^ 0x50.
        assert_eq!(FlowHash::Ports.of(&Toeplitz::default(), &frame(0xC005)), 0x95);
        assert_eq!(FlowHash::Ports.of(&Toeplitz::default(), &[0; 14]), 0);
    }

    #[test]
    fn the_crc_of_one_bit_is_its_polynomial() {
        assert_eq!(crc(&[1]), POLYNOMIAL);
        assert_eq!(crc(&[0, 0]), 0);
        // The byte's bit 1 is shifted out one step before the end, so the polynomial is shifted once more. The
        // polynomial's highest bit is clear.
        assert_eq!(crc(&[2]), POLYNOMIAL << 1);
    }

    #[test]
    fn consecutive_ports_are_even_among_channels_and_rings() {
        for (hash, places) in [(FlowHash::Crc, 8), (FlowHash::Ports, 16)] {
            let mut counts = vec![0; places];
            for port in 0..32 {
                counts[hash.of(&Toeplitz::default(), &frame(0xC000 + port)) % places] += 1;
            }
            assert_eq!(counts, vec![32 / places as u32; places], "{hash:?}");
        }
    }
}
