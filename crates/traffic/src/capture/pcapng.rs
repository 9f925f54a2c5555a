//! Blocks of pcapng: sections, interfaces with their options, and packets.
//!
//! Source of blocks and options: draft-ietf-opsawg-pcapng, section 4, and appendix A for the obsolete packet block.

use super::input::{Input, LONGEST};
use super::record::{Found, Tick, need, seconds, u16_of, u32_of};
use std::io::Read;

/// Maximum number of interfaces in a section.
const MOST_INTERFACES: usize = 1 << 16;
/// The supported minor versions in section headers.
const MINORS: [u16; 2] = [0, 2];

pub(super) const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// The end of a list of options.
const END: u16 = 0;
/// Options of an interface.
const IF_TSRESOL: u16 = 9;
const IF_FCSLEN: u16 = 13;
const IF_TSOFFSET: u16 = 14;
/// The flags option of a packet: epb_flags, or pack_flags of the obsolete packet block.
const FLAGS: u16 = 2;

/// Pairs of bits in a packet's flags and the link error that they report. The last entry has all bits without a name.
const FAULTS: [(u32, &str); 9] = [
    (1 << 24, "CRC error"),
    (1 << 25, "packet too long"),
    (1 << 26, "packet too short"),
    (1 << 27, "wrong gap between frames"),
    (1 << 28, "unaligned frame"),
    (1 << 29, "error in the start frame delimiter"),
    (1 << 30, "error in the preamble"),
    (1 << 31, "symbol error"),
    (0x00ff_0000, "an error of the link"),
];

/// The current section: its byte order and its interfaces.
pub(super) struct Section {
    big: bool,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy)]
struct Interface {
    link: u32,
    /// Maximum captured bytes of a packet; 0 means no limit.
    snap: u32,
    tick: Tick,
    /// The number of seconds to add to the times of the interface's packets.
    offset: i64,
    /// Length of the frame check sequence after each packet, in bytes.
    fcs: u64,
}

/// A block.
pub(super) enum Block {
    Packet(Found),
    /// A block without a packet.
    Other,
}

/// The fixed fields of a block with a packet.
struct Head {
    interface: usize,
    captured: usize,
    length: u32,
    ticks: Option<u64>,
    /// The offset of the packet's bytes in the block's body.
    from: usize,
}

impl Section {
    /// Returns the state before the first block of a file, which is a section header.
    pub(super) const fn none() -> Section {
        Section { big: true, interfaces: Vec::new() }
    }

    /// Returns the next block. `None` at the end of the file.
    ///
    /// # Errors
    /// When the file is damaged, cannot be read, or has an unsupported element.
    pub(super) fn next<R: Read>(&mut self, input: &mut Input<R>) -> Result<Option<Block>, String> {
        if !need(input, 12, "a block's header")? {
            return Ok(None);
        }
        let head = input.peek(12);
        let begins = u32_of(head, true) == SECTION;
        if begins {
            self.big = match u32_of(&head[8..], true) {
                0x1a2b_3c4d => true,
                0x4d3c_2b1a => false,
                _ => return Err("a section with an unknown byte order".into()),
            };
            self.interfaces.clear();
        }
        let big = self.big;
        let (kind, length) = (u32_of(head, big), u32_of(&head[4..], big) as usize);
        if length < 12 || !length.is_multiple_of(4) || length > LONGEST {
            return Err(format!(
                "a block of {length} bytes; the length has to be a multiple of 4 from 12 to {LONGEST}"
            ));
        }
        need(input, length, "a block")?;
        let behind = u32_of(&input.peek(length)[length - 4..], big) as usize;
        if behind != length {
            return Err(format!("a block with the length {length} at its start, but {behind} at its end"));
        }
        let whole = input.take(length);
        let body = whole.start + 8..whole.end - 4;
        let bytes = input.bytes(body.clone());
        match kind {
            _ if begins => self.begin(bytes).map(|()| Some(Block::Other)),
            INTERFACE => self.add_interface(bytes).map(|()| Some(Block::Other)),
            OLD_PACKET | SIMPLE_PACKET | ENHANCED_PACKET => {
                let mut packet = self.packet(kind, bytes)?;
                packet.at = body.start + packet.at.start..body.start + packet.at.end;
                Ok(Some(Block::Packet(packet)))
            }
            // Blocks with names, statistics or secrets, and private blocks, do not affect packets.
            _ => Ok(Some(Block::Other)),
        }
    }

    /// Checks the version of a section.
    fn begin(&self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() < 16 {
            return Err("a section header block that is too short".into());
        }
        match (u16_of(&bytes[4..], self.big), u16_of(&bytes[6..], self.big)) {
            (1, minor) if MINORS.contains(&minor) => Ok(()),
            (major, minor) => {
                Err(format!("a section of version {major}.{minor}; only 1.0 and 1.2 can be read"))
            }
        }
    }

    fn add_interface(&mut self, bytes: &[u8]) -> Result<(), String> {
        let big = self.big;
        if bytes.len() < 8 {
            return Err("an interface description block that is too short".into());
        }
        if self.interfaces.len() == MOST_INTERFACES {
            return Err(format!("more than {MOST_INTERFACES} interfaces"));
        }
        let (link, snap) = (u16_of(bytes, big).into(), u32_of(&bytes[4..], big));
        let mut interface = Interface { link, snap, tick: Tick::MICROSECOND, offset: 0, fcs: 0 };
        for option in (Options { left: &bytes[8..], big, of: "an interface" }) {
            match option? {
                (IF_TSRESOL, value) => {
                    let [resolution] = sized("if_tsresol of an interface", value)?;
                    interface.tick = Tick::of(resolution).ok_or_else(|| {
                        format!(
                            "an interface with the unsupported time resolution {resolution} \
                                 (if_tsresol)"
                        )
                    })?;
                }
                (IF_FCSLEN, value) => {
                    let [said] = sized("if_fcslen of an interface", value)?;
                    interface.fcs = fcs_bytes(said)?;
                }
                (IF_TSOFFSET, value) => {
                    let value = sized("if_tsoffset of an interface", value)?;
                    interface.offset =
                        if big { i64::from_be_bytes(value) } else { i64::from_le_bytes(value) };
                }
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Returns the packet of a block. Its range of bytes is relative to the start of the block's body.
    fn packet(&self, kind: u32, bytes: &[u8]) -> Result<Found, String> {
        let head = self.head(kind, bytes)?;
        let Head { interface, captured, length, ticks, from } = head;
        let Some(&Interface { link, tick, offset, fcs, .. }) = self.interfaces.get(interface) else {
            return Err(format!(
                "a packet of interface {interface}, but the number of interfaces is {}",
                self.interfaces.len()
            ));
        };
        if captured > bytes.len() - from {
            return Err(format!(
                "a packet of {captured} bytes in a block with room for {}",
                bytes.len() - from
            ));
        }
        let options = match kind {
            SIMPLE_PACKET => &[],
            _ => bytes.get(from + captured.next_multiple_of(4)..).unwrap_or_default(),
        };
        let flags = self.flags(options)?;
        let fcs = match u64::from(flags >> 5 & 0xf) {
            // The packet's flags do not state the length of a check sequence.
            0 => fcs,
            bytes => bytes,
        };
        let time = ticks.map(|ticks| tick.ps(ticks) + seconds(offset));
        let fault = FAULTS.iter().find(|(bits, _)| flags & bits != 0).map(|(_, what)| *what);
        Ok(Found { fault, ..Found::new(link, from..from + captured, length, fcs, time) })
    }

    fn head(&self, kind: u32, bytes: &[u8]) -> Result<Head, String> {
        let big = self.big;
        let short = || Err("a packet block that is too short".into());
        if kind == SIMPLE_PACKET {
            if bytes.len() < 4 {
                return short();
            }
            let snap = self.interfaces.first().map_or(0, |first| first.snap) as usize;
            let length = u32_of(bytes, big);
            let captured = (length as usize).min(if snap == 0 { usize::MAX } else { snap });
            return Ok(Head { interface: 0, captured, length, ticks: None, from: 4 });
        }
        if bytes.len() < 20 {
            return short();
        }
        let interface = match kind {
            OLD_PACKET => u16_of(bytes, big).into(),
            _ => u32_of(bytes, big) as usize,
        };
        let [high, low, captured, length] = [4, 8, 12, 16].map(|at| u32_of(&bytes[at..], big));
        let ticks = Some(u64::from(high) << 32 | u64::from(low));
        Ok(Head { interface, captured: captured as usize, length, ticks, from: 20 })
    }

    /// Returns the flags of a packet, or 0 if the packet has no flags.
    fn flags(&self, options: &[u8]) -> Result<u32, String> {
        for option in (Options { left: options, big: self.big, of: "a packet" }) {
            if let (FLAGS, value) = option? {
                let value: [u8; 4] = sized("the flags of a packet", value)?;
                return Ok(u32_of(&value, self.big));
            }
        }
        Ok(0)
    }
}

/// Converts the option if_fcslen to the length of a frame check sequence in bytes. The draft defines the option in
/// bits, but its example is 4, and some programs write 4 for 4 bytes. No check sequence has fewer than 8 bits, so a
/// value below 8 is a number of bytes.
fn fcs_bytes(said: u8) -> Result<u64, String> {
    match said {
        bytes @ 0..8 => Ok(bytes.into()),
        bits if bits.is_multiple_of(8) => Ok(u64::from(bits) / 8),
        bits => Err(format!("an interface with frame check sequences of {bits} bits (if_fcslen)")),
    }
}

/// Returns the value of an option with a fixed length.
fn sized<const N: usize>(name: &str, value: &[u8]) -> Result<[u8; N], String> {
    value.try_into().map_err(|_| format!("{name} has {} bytes, not {N}", value.len()))
}

/// The options of a block, up to the end of the list.
struct Options<'o> {
    left: &'o [u8],
    big: bool,
    /// The owner of the options, in error messages.
    of: &'static str,
}

impl<'o> Iterator for Options<'o> {
    type Item = Result<(u16, &'o [u8]), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.len() < 4 {
            return None;
        }
        let (code, length) = (u16_of(self.left, self.big), usize::from(u16_of(&self.left[2..], self.big)));
        if code == END {
            return None;
        }
        let Some(value) = self.left.get(4..4 + length) else {
            self.left = &[];
            return Some(Err(format!(
                "an option of {} with {length} bytes, more than its block has",
                self.of
            )));
        };
        self.left = self.left.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        Some(Ok((code, value)))
    }
}
