//! TCP's options: segment size, window scale, SACK, time stamps.

use crate::frame::{be16, be32};

/// Maximum number of SACK ranges in a segment: the option has room for four.
const MOST_BLOCKS: usize = 4;
/// The maximum shift of a window (RFC 7323, 2.3).
pub(crate) const MOST_SCALE: u8 = 14;

/// The options of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpOptions {
    pub segment: Option<u16>,
    pub scale: Option<u8>,
    pub sack_permitted: bool,
    /// The time stamps: the sender's clock (TSval), and the last value that it received from this end (TSecr).
    pub stamps: Option<(u32, u32)>,
    pub sacks: Blocks,
}

/// SACK ranges. Each is the first sequence number, and the number after the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocks {
    blocks: [(u32, u32); MOST_BLOCKS],
    count: usize,
}

impl Blocks {
    pub fn push(&mut self, block: (u32, u32)) {
        if self.count < MOST_BLOCKS {
            self.blocks[self.count] = block;
            self.count += 1;
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.blocks.into_iter().take(self.count)
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Bytes of the time-stamp option with two bytes of padding, as in every segment of a connection with time stamps.
pub(crate) const STAMPS: usize = 12;

impl TcpOptions {
    /// Reads the bytes between the header's fixed part and its end. Invalid options are skipped, as in all stacks.
    pub fn read(mut bytes: &[u8]) -> TcpOptions {
        let mut options = TcpOptions::default();
        while let [kind, rest @ ..] = bytes {
            bytes = match (kind, rest) {
                (0, _) => break,
                (1, _) => rest,
                (_, [length, ..]) if (2..=bytes.len()).contains(&usize::from(*length)) => {
                    let (option, others) = bytes.split_at(usize::from(*length));
                    options.take(*kind, &option[2..]);
                    others
                }
                _ => break,
            };
        }
        options
    }

    fn take(&mut self, kind: u8, body: &[u8]) {
        match (kind, body.len()) {
            (2, 2) => self.segment = Some(be16(body, 0)),
            (3, 1) => self.scale = Some(body[0].min(MOST_SCALE)),
            (4, 0) => self.sack_permitted = true,
            (5, n) if n % 8 == 0 => {
                for block in body.chunks_exact(8) {
                    self.sacks.push((be32(block, 0), be32(block, 4)));
                }
            }
            (8, 8) => self.stamps = Some((be32(body, 0), be32(body, 4))),
            _ => {}
        }
    }

    /// Bytes in a segment, a multiple of four.
    pub fn length(&self) -> usize {
        let mut length = 0;
        length += if self.segment.is_some() { 4 } else { 0 };
        length += if self.scale.is_some() { 4 } else { 0 };
        length += if self.sack_permitted { 4 } else { 0 };
        length += if self.stamps.is_some() { STAMPS } else { 0 };
        length + if self.sacks.is_empty() { 0 } else { 4 + 8 * self.sacks.count }
    }

    /// Appends the options, each padded to a multiple of four bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        if let Some(segment) = self.segment {
            out.extend_from_slice(&[2, 4]);
            out.extend_from_slice(&segment.to_be_bytes());
        }
        if let Some(scale) = self.scale {
            out.extend_from_slice(&[1, 3, 3, scale]);
        }
        if self.sack_permitted {
            out.extend_from_slice(&[1, 1, 4, 2]);
        }
        if let Some((own, echo)) = self.stamps {
            out.extend_from_slice(&[1, 1, 8, 10]);
            out.extend_from_slice(&own.to_be_bytes());
            out.extend_from_slice(&echo.to_be_bytes());
        }
        if !self.sacks.is_empty() {
            out.extend_from_slice(&[1, 1, 5, 2 + 8 * self.sacks.count as u8]);
            for (start, end) in self.sacks.iter() {
                out.extend_from_slice(&start.to_be_bytes());
                out.extend_from_slice(&end.to_be_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_options_are_read() {
        let mut all = TcpOptions {
            segment: Some(1460),
            scale: Some(3),
            sack_permitted: true,
            stamps: Some((1, 2)),
            ..TcpOptions::default()
        };
        all.sacks.push((7, 9));
        for options in [TcpOptions::default(), all, TcpOptions { stamps: None, ..all }] {
            let mut bytes = Vec::new();
            options.write(&mut bytes);
            assert_eq!(bytes.len(), options.length());
            assert_eq!(TcpOptions::read(&bytes), options);
            for end in 0..bytes.len() {
                TcpOptions::read(&bytes[..end]);
            }
        }
    }

    #[test]
    fn odd_options_are_passed_over() {
        // An unknown option, an MSS that is too long, a scale beyond 14, and a length past the end.
        let options = TcpOptions::read(&[99, 3, 0, 2, 5, 0, 0, 0, 3, 3, 200, 4, 2, 2, 9]);
        assert_eq!(options, TcpOptions { scale: Some(14), sack_permitted: true, ..TcpOptions::default() });
        assert_eq!(TcpOptions::read(&[2, 0, 5, 180]), TcpOptions::default(), "a length of nothing");
    }
}
