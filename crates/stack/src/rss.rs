//! Receive-side scaling: the Toeplitz hash over addresses and ports.
//!
//! The hash is Microsoft's, used by all cards with RSS ("RSS hashing functions"). It selects the queues of a card and
//! the soft rings of a kernel.

use crate::frame::{IpPacket, Malformed, Parsed, TCP, UDP, be16};
use std::net::IpAddr;

/// The key of Microsoft's verification suite, which most drivers use.
pub const MICROSOFT_KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
    0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
    0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// The Toeplitz hash with one key. It has a table of 256 hashes for each input byte.
#[derive(Clone, Debug)]
pub struct Toeplitz {
    tables: Box<[[u32; 256]; 36]>,
}

impl Default for Toeplitz {
    fn default() -> Toeplitz {
        Toeplitz::new(&MICROSOFT_KEY)
    }
}

impl Toeplitz {
    /// Returns the hash function with a key of 40 bytes.
    pub fn new(key: &[u8; 40]) -> Toeplitz {
        let mut tables = Box::new([[0; 256]; 36]);
        for (byte, table) in tables.iter_mut().enumerate() {
            // 40 bits of the key. For each bit of this byte, they contain the 32 key bits that begin at the bit.
            let window = key[byte..].iter().take(5).fold(0u64, |w, &k| w << 8 | u64::from(k));
            for (value, entry) in table.iter_mut().enumerate() {
                let bits = (0..8).filter(|bit| value & (0x80 >> bit) != 0);
                *entry = bits.fold(0, |hash, bit| hash ^ (window >> (8 - bit)) as u32);
            }
        }
        Toeplitz { tables }
    }

    /// Returns the hash of an array at an offset of the input. Its length is known, so that the loop is unrolled.
    #[inline]
    fn bytes<const N: usize>(&self, at: usize, bytes: [u8; N]) -> u32 {
        let tables: &[[u32; 256]; N] = self.tables[at..].first_chunk().expect("inside the input");
        (0..N).fold(0, |hash, each| hash ^ tables[each][usize::from(bytes[each])])
    }

    /// Returns the hash of two addresses of one family, and of two ports if there are any.
    pub fn hash(&self, source: IpAddr, destination: IpAddr, ports: Option<(u16, u16)>) -> u32 {
        let (hash, at) = match (source, destination) {
            (IpAddr::V4(s), IpAddr::V4(d)) => (self.bytes(0, s.octets()) ^ self.bytes(4, d.octets()), 8),
            (IpAddr::V6(s), IpAddr::V6(d)) => (self.bytes(0, s.octets()) ^ self.bytes(16, d.octets()), 32),
            _ => return 0,
        };
        let Some((from, to)) = ports else { return hash };
        hash ^ self.bytes(at, from.to_be_bytes()) ^ self.bytes(at + 2, to.to_be_bytes())
    }

    /// Returns the hash of a packet. For TCP and UDP, it is over addresses and ports. For other protocols and for
    /// fragments, it is over the addresses alone.
    pub fn packet(&self, frame: &[u8], ip: &IpPacket) -> u32 {
        let has_ports = !ip.fragment && matches!(ip.protocol, TCP | UDP) && ip.payload.len() >= 4;
        let at = ip.payload.start;
        let ports = has_ports.then(|| (be16(frame, at), be16(frame, at + 2)));
        self.hash(ip.source, ip.destination, ports)
    }

    /// Returns the hash of a frame, or 0 if it is no IP packet.
    ///
    /// # Errors
    /// [`Malformed`] for bytes that are no frame.
    pub fn frame(&self, frame: &[u8]) -> Result<u32, Malformed> {
        Ok(Parsed::read(frame)?.ip.map_or(0, |ip| self.packet(frame, &ip)))
    }
}
