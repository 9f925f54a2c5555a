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
    /// Its length on the wire, of which perhaps not all was captured.
    pub length: u64,
    /// When it was captured, in picoseconds since 1970; none if the capture does not say.
    pub time: Option<u128>,
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
    Pcap { big: bool, link: u32, longest: usize, tick: Tick },
    Pcapng { big: bool, interfaces: Vec<Interface> },
}

#[derive(Clone, Copy)]
struct Interface {
    link: u32,
    /// Bytes of a packet that are captured at most; 0 is all.
    snap: u32,
    tick: Tick,
}

/// The unit of times: so many of them are a second.
#[derive(Clone, Copy)]
struct Tick(u128);

impl Tick {
    const MICROSECOND: Tick = Tick(1_000_000);
    const NANOSECOND: Tick = Tick(1_000_000_000);

    /// As the option if_tsresol of an interface says: a power of 10, or of 2 with the highest bit set. None for what is
    /// finer than any clock.
    fn of(resolution: u8) -> Option<Tick> {
        match resolution {
            power @ 0..=18 => Some(Tick(10u128.pow(power.into()))),
            power @ 128..=188 => Some(Tick(1 << (power & 127))),
            _ => None,
        }
    }

    /// So many of them in picoseconds.
    fn ps(self, count: u64) -> u128 {
        let second = 1_000_000_000_000;
        let (whole, rest) = (u128::from(count) / self.0, u128::from(count) % self.0);
        whole * second + rest * second / self.0
    }
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
        let (big, tick) = match magic {
            0xa1b2_c3d4 => (true, Tick::MICROSECOND),
            0xa1b2_3c4d => (true, Tick::NANOSECOND),
            0xd4c3_b2a1 => (false, Tick::MICROSECOND),
            0x4d3c_b2a1 => (false, Tick::NANOSECOND),
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
        Ok(Capture { input, format: Format::Pcap { big, link, longest, tick }, packets: 0, damaged: false })
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
            Format::Pcap { big, link, longest, tick } => pcap(&mut self.input, *big, *link, *longest, *tick),
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
            Ok(Some(Found { link, at, length, time })) => {
                self.packets += 1;
                Some(Ok(Packet { link, bytes: self.input.bytes(at), length, time }))
            }
            Err(what) => {
                self.damaged = true;
                Some(Err(Damage { packet: self.packets + 1, byte, what }))
            }
        }
    }
}

/// A packet, and where its bytes are.
struct Found {
    link: u32,
    at: std::ops::Range<usize>,
    length: u64,
    time: Option<u128>,
}

/// An error of the file's in words, without the system's number for it.
fn unreadable(error: &std::io::Error) -> String {
    let text = error.to_string();
    format!("cannot be read ({})", text.split(" (os error").next().unwrap_or(&text))
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
    tick: Tick,
) -> Result<Option<Found>, String> {
    if !need(input, 16, "a packet's head")? {
        return Ok(None);
    }
    let head = input.peek(16);
    let [seconds, fraction, captured, wire] = [0, 4, 8, 12].map(|at| u32_of(&head[at..], big));
    let time = Some(Tick(1).ps(seconds.into()) + tick.ps(fraction.into()));
    let length = captured as usize;
    if length > longest {
        return Err(format!("a packet of {length} bytes, where {longest} are the most there can be"));
    }
    need(input, 16 + length, "the packet")?;
    input.take(16);
    Ok(Some(Found { link, at: input.take(length), length: wire.into(), time }))
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
    let ticks =
        |at: usize| u64::from(u32_of(&bytes[at..], big)) << 32 | u64::from(u32_of(&bytes[at + 4..], big));
    // A packet's head in its block: where its interface and lengths are, its time, and its bytes begin.
    let (interface, captured, wire, time, from) = match kind {
        INTERFACE => {
            if bytes.len() < 8 {
                return Err("a block of an interface that is too short".into());
            }
            if interfaces.len() == MOST_INTERFACES {
                return Err(format!("more than {MOST_INTERFACES} interfaces"));
            }
            let (link, snap) = (u16_of(bytes, big).into(), u32_of(&bytes[4..], big));
            interfaces.push(Interface { link, snap, tick: resolution(&bytes[8..], big)? });
            return Ok(Some(None));
        }
        ENHANCED_PACKET | OLD_PACKET if bytes.len() >= 20 => {
            let interface = match kind {
                OLD_PACKET => u16_of(bytes, big).into(),
                _ => u32_of(bytes, big) as usize,
            };
            (interface, u32_of(&bytes[12..], big) as usize, u32_of(&bytes[16..], big), Some(ticks(4)), 20)
        }
        SIMPLE_PACKET if bytes.len() >= 4 => {
            let snap = interfaces.first().map_or(0, |first| first.snap) as usize;
            let length = (u32_of(bytes, big) as usize).min(if snap == 0 { usize::MAX } else { snap });
            (0, length, u32_of(bytes, big), None, 4)
        }
        ENHANCED_PACKET | OLD_PACKET | SIMPLE_PACKET => {
            return Err("a block of a packet that is too short".into());
        }
        _ => return Ok(Some(None)),
    };
    let Some(&Interface { link, tick, .. }) = interfaces.get(interface) else {
        return Err(format!("a packet of interface {interface}, and there are {}", interfaces.len()));
    };
    if captured > bytes.len() - from {
        return Err(format!("a packet of {captured} bytes in a block with room for {}", bytes.len() - from));
    }
    let at = body.start + from;
    let (length, time) = (wire.into(), time.map(|ticks| tick.ps(ticks)));
    Ok(Some(Some(Found { link, at: at..at + captured, length, time })))
}

/// The unit of an interface's times, by its options.
fn resolution(mut options: &[u8], big: bool) -> Result<Tick, String> {
    const END: u16 = 0;
    const RESOLUTION: u16 = 9;
    while options.len() >= 4 {
        let (code, length) = (u16_of(options, big), usize::from(u16_of(&options[2..], big)));
        let Some(value) = options.get(4..4 + length) else {
            return Err(format!("an option of an interface with {length} bytes, which are not there"));
        };
        match (code, value) {
            (END, _) => break,
            (RESOLUTION, [resolution]) => {
                return Tick::of(*resolution).ok_or_else(|| {
                    format!("an interface whose times have the unknown resolution {resolution}")
                });
            }
            _ => {}
        }
        options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(Tick::MICROSECOND)
}
