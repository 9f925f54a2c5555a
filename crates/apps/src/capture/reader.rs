//! The packets of a capture.

use super::input::{Input, LONGEST, Look};
use std::fmt;
use std::io::Read;

/// A packet as it was captured: perhaps not all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'c> {
    /// The type of its first bytes: a LINKTYPE of tcpdump.org's list.
    pub link: u32,
    /// The captured bytes.
    pub bytes: &'c [u8],
}

/// Where a capture is damaged. Packets read before it are valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The packet that cannot be read, or that has damage in front of it; the first one is 1.
    pub packet: u64,
    /// The first damaged byte of the file.
    pub byte: u64,
    /// The damage.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { packet, byte, what } = self;
        write!(f, "at packet {packet}, byte {byte}: {what}")
    }
}

/// A capture that is read as it arrives.
pub struct Capture<R> {
    input: Input<R>,
    format: Format,
    packets: u64,
    damaged: bool,
}

enum Format {
    Pcap { big: bool, link: u32, longest: usize },
    Pcapng { big: bool, interfaces: Vec<Interface> },
}

#[derive(Clone, Copy)]
struct Interface {
    link: u32,
    /// Bytes of a packet that are captured at most; 0 is all.
    snap: u32,
}

/// Packets are not longer than this, where a capture does not say that its own may be.
const USUAL: usize = 256 << 10;
/// The most interfaces of a section.
const MOST_INTERFACES: usize = 1 << 16;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

fn u32_of(bytes: &[u8], big: bool) -> u32 {
    let word = [bytes[0], bytes[1], bytes[2], bytes[3]];
    if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
}

fn u16_of(bytes: &[u8], big: bool) -> u16 {
    let half = [bytes[0], bytes[1]];
    if big { u16::from_be_bytes(half) } else { u16::from_le_bytes(half) }
}

impl<R: Read> Capture<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// When it does not begin as a capture does.
    pub fn new(reader: R) -> Result<Capture<R>, Damage> {
        let mut input = Input::new(reader);
        let wrong = |what: String| Err(Damage { packet: 1, byte: 0, what });
        match input.look(4) {
            Err(error) => return wrong(unreadable(&error)),
            Ok(Look::Short(0)) => return wrong("the file is empty".into()),
            Ok(Look::Short(_)) => return wrong("too short for a capture".into()),
            Ok(Look::Whole) => {}
        }
        let magic = u32_of(input.peek(4), true);
        let big = match magic {
            0xa1b2_c3d4 | 0xa1b2_3c4d => true,
            0xd4c3_b2a1 | 0x4d3c_b2a1 => false,
            SECTION => {
                // Its own section's head is the first block.
                let format = Format::Pcapng { big: true, interfaces: Vec::new() };
                return Ok(Capture { input, format, packets: 0, damaged: false });
            }
            _ => return wrong("this is no capture; pcap and pcapng are read".into()),
        };
        match input.look(24) {
            Err(error) => return wrong(unreadable(&error)),
            Ok(Look::Short(_)) => return wrong("the file ends within its head".into()),
            Ok(Look::Whole) => {}
        }
        let head = input.peek(24);
        // The upper half says whether packets end with a frame check sequence.
        let (snap, link) = (u32_of(&head[16..], big), u32_of(&head[20..], big) & 0xffff);
        input.take(24);
        let longest = (snap as usize).clamp(USUAL, LONGEST - 16);
        Ok(Capture { input, format: Format::Pcap { big, link, longest }, packets: 0, damaged: false })
    }

    /// `pcap` or `pcapng`.
    pub fn format(&self) -> &'static str {
        match self.format {
            Format::Pcap { .. } => "pcap",
            Format::Pcapng { .. } => "pcapng",
        }
    }

    /// Packets read so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes of the file that have been read so far.
    pub fn position(&self) -> u64 {
        self.input.position()
    }

    /// The next packet; none at the end, and none behind damage.
    ///
    /// # Errors
    /// When the capture is damaged, or cannot be read further.
    pub fn next_packet(&mut self) -> Option<Result<Packet<'_>, Damage>> {
        if self.damaged {
            return None;
        }
        let mut byte = self.input.position();
        let found = match &mut self.format {
            Format::Pcap { big, link, longest } => pcap(&mut self.input, *big, *link, *longest),
            Format::Pcapng { big, interfaces } => loop {
                byte = self.input.position();
                match block(&mut self.input, big, interfaces) {
                    Ok(Some(None)) => {}
                    Ok(Some(Some(packet))) => break Ok(Some(packet)),
                    Ok(None) => break Ok(None),
                    Err(what) => break Err(what),
                }
            },
        };
        match found {
            Ok(None) => None,
            Ok(Some((link, at))) => {
                self.packets += 1;
                Some(Ok(Packet { link, bytes: self.input.bytes(at) }))
            }
            Err(what) => {
                self.damaged = true;
                Some(Err(Damage { packet: self.packets + 1, byte, what }))
            }
        }
    }
}

/// A packet: its link type, and where its bytes are.
type Found = (u32, std::ops::Range<usize>);

fn unreadable(error: &std::io::Error) -> String {
    format!("cannot be read ({})", crate::tsp::plain(error))
}

/// Ensures `count` bytes; false at the end of the file.
fn need<R: Read>(input: &mut Input<R>, count: usize, what: &str) -> Result<bool, String> {
    match input.look(count) {
        Err(error) => Err(unreadable(&error)),
        Ok(Look::Whole) => Ok(true),
        Ok(Look::Short(0)) => Ok(false),
        Ok(Look::Short(there)) => {
            Err(format!("the file ends {} bytes before the end of {what}", count - there))
        }
    }
}

fn pcap<R: Read>(
    input: &mut Input<R>,
    big: bool,
    link: u32,
    longest: usize,
) -> Result<Option<Found>, String> {
    if !need(input, 16, "a packet's head")? {
        return Ok(None);
    }
    let length = u32_of(&input.peek(16)[8..], big) as usize;
    if length > longest {
        return Err(format!("a packet of {length} bytes, where {longest} are the most there can be"));
    }
    need(input, 16 + length, "the packet")?;
    input.take(16);
    Ok(Some((link, input.take(length))))
}

/// The next block of a pcapng: its packet, if any; none at the end.
fn block<R: Read>(
    input: &mut Input<R>,
    big: &mut bool,
    interfaces: &mut Vec<Interface>,
) -> Result<Option<Option<Found>>, String> {
    if !need(input, 12, "a block's head")? {
        return Ok(None);
    }
    let head = input.peek(12);
    if u32_of(head, true) == SECTION {
        *big = match u32_of(&head[8..], true) {
            0x1a2b_3c4d => true,
            0x4d3c_2b1a => false,
            _ => return Err("a section whose order of bytes is unknown".into()),
        };
        interfaces.clear();
    }
    let big = *big;
    let (kind, length) = (u32_of(head, big), u32_of(&head[4..], big) as usize);
    if length < 12 || !length.is_multiple_of(4) || length > LONGEST {
        return Err(format!("a block of {length} bytes, where multiples of 4 from 12 to {LONGEST} can be"));
    }
    need(input, length, "a block")?;
    let behind = u32_of(&input.peek(length)[length - 4..], big) as usize;
    if behind != length {
        return Err(format!("a block that begins with {length} bytes as its length, and ends with {behind}"));
    }
    let whole = input.take(length);
    let body = whole.start + 8..whole.end - 4;
    let bytes = input.bytes(body.clone());
    // A packet's head in its block: where its interface and length are, and its bytes begin.
    let (interface, captured, from) = match kind {
        INTERFACE => {
            if bytes.len() < 8 {
                return Err("a block of an interface that is too short".into());
            }
            if interfaces.len() == MOST_INTERFACES {
                return Err(format!("more than {MOST_INTERFACES} interfaces"));
            }
            interfaces.push(Interface { link: u16_of(bytes, big).into(), snap: u32_of(&bytes[4..], big) });
            return Ok(Some(None));
        }
        ENHANCED_PACKET if bytes.len() >= 20 => {
            (u32_of(bytes, big) as usize, u32_of(&bytes[12..], big) as usize, 20)
        }
        OLD_PACKET if bytes.len() >= 20 => {
            (u16_of(bytes, big).into(), u32_of(&bytes[12..], big) as usize, 20)
        }
        SIMPLE_PACKET if bytes.len() >= 4 => {
            let snap = interfaces.first().map_or(0, |first| first.snap) as usize;
            let length = (u32_of(bytes, big) as usize).min(if snap == 0 { usize::MAX } else { snap });
            (0, length, 4)
        }
        ENHANCED_PACKET | OLD_PACKET | SIMPLE_PACKET => {
            return Err("a block of a packet that is too short".into());
        }
        _ => return Ok(Some(None)),
    };
    let Some(&Interface { link, .. }) = interfaces.get(interface) else {
        return Err(format!("a packet of interface {interface}, and there are {}", interfaces.len()));
    };
    if captured > bytes.len() - from {
        return Err(format!("a packet of {captured} bytes in a block with room for {}", bytes.len() - from));
    }
    let at = body.start + from;
    Ok(Some(Some((link, at..at + captured))))
}
