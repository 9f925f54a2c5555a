//! Records of pcap, and the header of a pcap file.
//!
//! Source of the fields: draft-ietf-opsawg-pcap, sections 4 and 5.

use super::input::{Input, LONGEST};
use super::record::{Found, Tick, need, u16_of, u32_of};
use std::io::Read;

/// Bytes of the file header.
pub(super) const HEADER: usize = 24;
/// Maximum length of a packet in bytes, unless the capture's header states a larger maximum.
const USUAL: usize = 256 << 10;
/// The supported version.
const VERSION: (u16, u16) = (2, 4);

/// The bits above the link type in the header's last field. They are the length of the frame check sequence in units of
/// two bytes, and a flag that this length is valid. The reserved bits must be 0.
const FCS_SHIFT: u32 = 28;
const FCS_SAID: u32 = 1 << 26;
const RESERVED: u32 = 0x0bff_0000;

/// Unsupported formats. Each has the first bytes of its files, and a description. Source of the modified pcap formats:
/// libpcap's sf-pcap.c and Wireshark's libpcap.h.
const OTHERS: [(&[u8], &str); 17] = [
    (&[0xa1, 0xb2, 0xcd, 0x34], "a modified pcap with longer records (Kuznetzov's)"),
    (&[0x34, 0xcd, 0xb2, 0xa1], "a modified pcap with longer records (Kuznetzov's)"),
    (&[0xa1, 0xb2, 0x34, 0xcd], "a modified pcap with longer records (Mesquita's)"),
    (&[0xcd, 0x34, 0xb2, 0xa1], "a modified pcap with longer records (Mesquita's)"),
    (&[0xa1, 0x2b, 0x3c, 0x4d], "a modified pcap (Navtel's)"),
    (&[0x4d, 0x3c, 0x2b, 0xa1], "a modified pcap (Navtel's)"),
    (&[0x1c, 0x00, 0x01, 0xac], "a modified pcap (IXIA's)"),
    (&[0xac, 0x01, 0x00, 0x1c], "a modified pcap (IXIA's)"),
    (&[0x1c, 0x00, 0x01, 0xab], "a modified pcap (IXIA's)"),
    (&[0xab, 0x01, 0x00, 0x1c], "a modified pcap (IXIA's)"),
    (b"snoo", "a capture of snoop"),
    (b"XCP\0", "a capture of NetXRay or Sniffer"),
    (b"GMBU", "a capture of Microsoft's Network Monitor"),
    (b"BZh", "compressed by bzip2"),
    (b"\xfd7zX", "compressed by xz"),
    (&[0x04, 0x22, 0x4d, 0x18], "compressed by lz4"),
    (b"PK\x03\x04", "an archive of zip"),
];

/// Returns the description of the format of a file with these first bytes, if it is a known unsupported format.
pub(super) fn other_format(first: &[u8]) -> Option<&'static str> {
    OTHERS.iter().find(|(begin, _)| first.starts_with(begin)).map(|(_, what)| *what)
}

/// The fields of a file header that are needed to read packets.
#[derive(Clone, Copy)]
pub(super) struct Header {
    pub(super) big: bool,
    link: u32,
    /// Maximum length of a record in bytes.
    longest: usize,
    tick: Tick,
    /// Length of the frame check sequence after each packet, in bytes.
    fcs: u64,
}

impl Header {
    /// Parses the header.
    ///
    /// # Errors
    /// When the version is not 2.4, or reserved bits are set.
    pub(super) fn of(bytes: &[u8], big: bool, tick: Tick) -> Result<Header, String> {
        let version = (u16_of(&bytes[4..], big), u16_of(&bytes[6..], big));
        if version != VERSION {
            return Err(format!(
                "it has version {}.{} of pcap, but only 2.4 can be read; convert it, as by editcap of \
                 Wireshark",
                version.0, version.1
            ));
        }
        let (snap, kind) = (u32_of(&bytes[16..], big), u32_of(&bytes[20..], big));
        if kind & RESERVED != 0 {
            return Err(format!("reserved bits of its link type are set (0x{kind:08x})"));
        }
        let fcs = if kind & FCS_SAID != 0 { u64::from(kind >> FCS_SHIFT) * 2 } else { 0 };
        let longest = (snap as usize).clamp(USUAL, LONGEST - 16);
        Ok(Header { big, link: kind & 0xffff, longest, tick, fcs })
    }

    /// Returns the next packet. `None` at the end of the file.
    ///
    /// # Errors
    /// When the file is damaged or cannot be read.
    pub(super) fn next<R: Read>(&self, input: &mut Input<R>) -> Result<Option<Found>, String> {
        if !need(input, 16, "a packet's header")? {
            return Ok(None);
        }
        let head = input.peek(16);
        let [seconds, fraction, captured, length] = [0, 4, 8, 12].map(|at| u32_of(&head[at..], self.big));
        let time = Tick::SECOND.ps(seconds.into()) + self.tick.ps(fraction.into());
        let (captured, longest) = (captured as usize, self.longest);
        if captured > longest {
            return Err(format!("a packet of {captured} bytes; the maximum is {longest}"));
        }
        need(input, 16 + captured, "the packet")?;
        input.take(16);
        Ok(Some(Found::new(self.link, input.take(captured), length, self.fcs, Some(time))))
    }
}
