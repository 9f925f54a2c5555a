//! A packet's record in either format: bytes, lengths and time.

use super::input::{Input, Look};
use std::io::Read;
use std::ops::Range;

/// Picoseconds per second.
const SECOND: i128 = 1_000_000_000_000;

/// The unit of times, as ticks per second.
#[derive(Clone, Copy)]
pub(super) struct Tick(u128);

impl Tick {
    pub(super) const SECOND: Tick = Tick(1);
    pub(super) const MICROSECOND: Tick = Tick(1_000_000);
    pub(super) const NANOSECOND: Tick = Tick(1_000_000_000);

    /// Converts the option if_tsresol of an interface: a power of 10, or a power of 2 if the highest bit is set. `None`
    /// for resolutions finer than any clock.
    pub(super) fn of(resolution: u8) -> Option<Tick> {
        match resolution {
            power @ 0..=18 => Some(Tick(10u128.pow(power.into()))),
            power @ 128..=188 => Some(Tick(1 << (power & 127))),
            _ => None,
        }
    }

    /// Converts `count` ticks to picoseconds.
    pub(super) fn ps(self, count: u64) -> i128 {
        let (whole, rest) = (u128::from(count) / self.0, u128::from(count) % self.0);
        whole as i128 * SECOND + (rest * SECOND as u128 / self.0) as i128
    }
}

/// Converts seconds to picoseconds.
pub(super) const fn seconds(count: i64) -> i128 {
    count as i128 * SECOND
}

/// A packet, with the range of its bytes in the buffer.
pub(super) struct Found {
    pub(super) link: u32,
    pub(super) at: Range<usize>,
    pub(super) length: u64,
    pub(super) time: Option<i128>,
    pub(super) fault: Option<&'static str>,
}

impl Found {
    /// Returns a packet that has `length` bytes on its link. `captured` is the range of its captured bytes. Removes a
    /// frame check sequence of `fcs` bytes at the packet's end.
    pub(super) fn new(link: u32, captured: Range<usize>, length: u32, fcs: u64, time: Option<i128>) -> Found {
        let length = u64::from(length).saturating_sub(fcs);
        // A record may have more bytes than its packet had on the link.
        let kept = usize::try_from(length).unwrap_or(usize::MAX).min(captured.len());
        Found { link, at: captured.start..captured.start + kept, length, time, fault: None }
    }
}

pub(super) fn u32_of(bytes: &[u8], big: bool) -> u32 {
    let word = [bytes[0], bytes[1], bytes[2], bytes[3]];
    if big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
}

pub(super) fn u16_of(bytes: &[u8], big: bool) -> u16 {
    let half = [bytes[0], bytes[1]];
    if big { u16::from_be_bytes(half) } else { u16::from_le_bytes(half) }
}

/// Returns the text of an error of a read, without the system's error number.
pub(super) fn unreadable(error: &std::io::Error) -> String {
    let text = error.to_string();
    format!("cannot be read ({})", text.split(" (os error").next().unwrap_or(&text))
}

/// Reads until `count` bytes are available. Returns false if the file ends before the first of these bytes. `what`
/// names the bytes in an error.
pub(super) fn need<R: Read>(input: &mut Input<R>, count: usize, what: &str) -> Result<bool, String> {
    match input.look(count) {
        Err(error) => Err(unreadable(&error)),
        Ok(Look::Whole) => Ok(true),
        Ok(Look::Short(0)) => Ok(false),
        Ok(Look::Short(there)) => {
            Err(format!("the file ends {} bytes before the end of {what}", count - there))
        }
    }
}
