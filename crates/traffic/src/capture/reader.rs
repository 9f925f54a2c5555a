//! Reads the packets of a capture.

use super::input::{Input, Look};
use super::pcap::{self, Header};
use super::pcapng::{Block, SECTION, Section};
use super::record::{Found, Tick, u32_of, unreadable};
use std::fmt;
use std::io::Read;

/// A captured packet. The capture may have only the packet's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'c> {
    /// The link type: a LINKTYPE value of tcpdump.org's list. It determines the header at the start of `bytes`.
    pub link: u32,
    /// The captured bytes, without a frame check sequence.
    pub bytes: &'c [u8],
    /// The packet's length on the link in bytes, without a frame check sequence. It is at least the length of `bytes`.
    pub length: u64,
    /// The capture time, in picoseconds since 1970. `None` if the packet has no time.
    pub time: Option<i128>,
    /// The link error that the packet's flags report, if any.
    pub fault: Option<&'static str>,
}

/// The place and description of damage in a capture. Packets that were read before the damage are valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The number of the unreadable packet, or of the first packet after the damage. Packets are counted from 1.
    pub packet: u64,
    /// The position of the damaged record or block in the file, in bytes.
    pub byte: u64,
    /// A description of the damage.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { packet, byte, what } = self;
        write!(f, "at packet {packet}, byte {byte}: {what}")
    }
}

/// A capture that is read one packet at a time.
pub struct Capture<R> {
    input: Input<R>,
    format: Format,
    packets: u64,
    damaged: bool,
}

enum Format {
    Pcap(Header),
    Pcapng(Section),
}

impl<R: Read> Capture<R> {
    /// Opens a capture, and reads its header.
    ///
    /// # Errors
    /// When the file does not begin as a capture, or has an unsupported version.
    pub fn new(reader: R) -> Result<Capture<R>, Damage> {
        let mut input = Input::new(reader);
        let format = Format::of(&mut input).map_err(|what| Damage { packet: 1, byte: 0, what })?;
        Ok(Capture { input, format, packets: 0, damaged: false })
    }

    /// Returns the format: `pcap` or `pcapng`.
    pub fn format(&self) -> &'static str {
        match self.format {
            Format::Pcap(_) => "pcap",
            Format::Pcapng(_) => "pcapng",
        }
    }

    /// Returns the number of packets read so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of bytes of the capture read so far.
    pub fn position(&self) -> u64 {
        self.input.position()
    }

    /// Returns the next packet. `None` at the end of the file, and after damage was reported.
    ///
    /// # Errors
    /// When the capture is damaged, or cannot be read further.
    pub fn next_packet(&mut self) -> Option<Result<Packet<'_>, Damage>> {
        if self.damaged {
            return None;
        }
        let mut byte = self.input.position();
        let found = match &mut self.format {
            Format::Pcap(header) => header.next(&mut self.input),
            Format::Pcapng(section) => loop {
                byte = self.input.position();
                match section.next(&mut self.input) {
                    Ok(Some(Block::Other)) => {}
                    Ok(Some(Block::Packet(packet))) => break Ok(Some(packet)),
                    Ok(None) => break Ok(None),
                    Err(what) => break Err(what),
                }
            },
        };
        match found {
            Ok(None) => None,
            Ok(Some(Found { link, at, length, time, fault })) => {
                self.packets += 1;
                Some(Ok(Packet { link, bytes: self.input.bytes(at), length, time, fault }))
            }
            Err(what) => {
                self.damaged = true;
                Some(Err(Damage { packet: self.packets + 1, byte, what }))
            }
        }
    }
}

/// The order of bytes and the unit of times of a pcap file that begins with this number.
const fn pcap_of(first: u32) -> Option<(bool, Tick)> {
    match first {
        0xa1b2_c3d4 => Some((true, Tick::MICROSECOND)),
        0xa1b2_3c4d => Some((true, Tick::NANOSECOND)),
        0xd4c3_b2a1 => Some((false, Tick::MICROSECOND)),
        0x4d3c_b2a1 => Some((false, Tick::NANOSECOND)),
        _ => None,
    }
}

/// Whether bytes begin as a capture.
pub(super) fn is_capture(bytes: &[u8]) -> bool {
    bytes.first_chunk::<4>().is_some_and(|first| {
        let first = u32::from_be_bytes(*first);
        first == SECTION || pcap_of(first).is_some()
    })
}

impl Format {
    /// Returns the format, from the first bytes of a file.
    fn of<R: Read>(input: &mut Input<R>) -> Result<Format, String> {
        match input.look(4) {
            Err(error) => return Err(unreadable(&error)),
            Ok(Look::Short(0)) => return Err("the file is empty".into()),
            Ok(Look::Short(_)) => return Err("too short for a capture".into()),
            Ok(Look::Whole) => {}
        }
        let (big, tick) = match u32_of(input.peek(4), true) {
            SECTION => return Ok(Format::Pcapng(Section::none())),
            first => pcap_of(first).ok_or_else(|| {
                let what = pcap::other_format(input.peek(4)).unwrap_or("no capture");
                format!("this is {what}; pcap and pcapng can be read, also compressed by gzip or zstd")
            })?,
        };
        match input.look(pcap::HEADER) {
            Err(error) => return Err(unreadable(&error)),
            Ok(Look::Short(_)) => return Err("the file ends within its header".into()),
            Ok(Look::Whole) => {}
        }
        let header = Header::of(input.peek(pcap::HEADER), big, tick)?;
        input.take(pcap::HEADER);
        Ok(Format::Pcap(header))
    }
}
