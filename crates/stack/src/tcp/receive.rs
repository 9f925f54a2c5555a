//! The receiving half of a connection: bytes in order, out-of-order bytes ("early"), and the window.

use super::options::{Blocks, MOST_SCALE};
use super::ranges::Ranges;
use super::ring::Ring;
use super::seq::Numbering;

/// Maximum number of SACK ranges in an acknowledgement: the ranges that changed last.
const RECENT: usize = 4;

#[derive(Debug)]
pub(crate) struct Receiver {
    pub numbering: Numbering,
    ring: Ring,
    /// The first unread position, and the first position that has not arrived.
    read: i64,
    next: i64,
    /// The end of the peer's stream, once its FIN has arrived.
    fin: Option<i64>,
    early: Ranges,
    /// A position in each range to report. The range of the latest arrival is first.
    recent: [i64; RECENT],
    /// The end of the last advertised window.
    announced: i64,
    /// The shift of advertised windows, if both ends support it.
    scale: u8,
    scaled: bool,
}

/// The effect of a segment's bytes on the receive buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    /// Additional bytes that the program can read.
    pub readable: usize,
    /// Whether this segment completes the stream: the FIN and all bytes before it have arrived.
    pub finished: bool,
    /// Whether the whole segment had arrived before.
    pub duplicate: bool,
    /// Whether the segment does not fit into the buffer.
    pub beyond: bool,
    /// Whether the segment follows missing bytes, or fills a hole. In both cases this end must acknowledge at once (RFC
    /// 5681, 4.2).
    pub out_of_order: bool,
}

/// Returns the minimum scale with which a whole buffer can be advertised.
pub(crate) fn scale_for(capacity: usize) -> u8 {
    let bits = usize::BITS - (capacity >> 16).leading_zeros();
    (bits as u8).min(MOST_SCALE)
}

impl Receiver {
    /// Returns the receiver for a peer with the initial sequence number `first`.
    pub fn new(first: u32, capacity: usize) -> Receiver {
        Receiver {
            numbering: Numbering::from(first),
            ring: Ring::new(capacity),
            read: 1,
            next: 1,
            fin: None,
            early: Ranges::default(),
            recent: [0; RECENT],
            announced: 1,
            scale: 0,
            scaled: false,
        }
    }

    /// Sets the window scale, after the peer has agreed to scaled windows.
    pub fn set_scale(&mut self, scale: u8) {
        (self.scale, self.scaled) = (scale, true);
    }

    pub fn is_scaled(&self) -> bool {
        self.scaled
    }

    /// The next expected position.
    pub fn next(&self) -> i64 {
        self.next
    }

    /// The next expected sequence number.
    pub fn expected(&self) -> u32 {
        self.numbering.number(self.next)
    }

    /// Whether the peer's FIN and everything before it have arrived.
    pub fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// The end of the positions that fit into the buffer.
    pub fn edge(&self) -> i64 {
        if self.is_finished() { self.next } else { self.read + self.ring.capacity() as i64 }
    }

    pub fn readable(&self) -> usize {
        (self.next - self.read - i64::from(self.is_finished())) as usize
    }

    pub fn has_holes(&self) -> bool {
        !self.early.is_empty()
    }

    /// Stores the bytes of a segment that begins at position `start`. If `fin` is true, the stream ends after these
    /// bytes.
    pub fn take(&mut self, start: i64, bytes: &[u8], fin: bool) -> Received {
        let mut taken = Received::default();
        let end = start + bytes.len() as i64;
        let edge = self.edge().min(self.fin.unwrap_or(i64::MAX));
        if fin && self.fin.is_none() && end >= self.next && end <= edge {
            self.fin = Some(end);
        }
        // The FIN counts as one more byte.
        let stop = end + i64::from(fin && self.fin == Some(end));
        if stop <= self.next {
            taken.duplicate = true;
            return taken;
        }
        let (from, to) = (start.max(self.next), end.min(edge));
        if from < to {
            let skip = (from - start) as usize;
            self.ring.write(from, &bytes[skip..skip + (to - from) as usize]);
        } else if stop == end || end > edge {
            taken.beyond = true;
            return taken;
        }
        let to = to.max(from) + (stop - end);
        let (was, had) = (self.is_finished(), self.readable());
        if from > self.next {
            taken.duplicate = self.early.around(from).is_some_and(|(_, end)| to <= end);
            taken.out_of_order = true;
            self.early.insert(from, to);
            self.remember(from);
        } else {
            taken.out_of_order = self.has_holes();
            self.next = self.early.absorb(to);
        }
        taken.finished = self.is_finished() && !was;
        taken.readable = self.readable() - had;
        taken
    }

    fn remember(&mut self, position: i64) {
        let range = self.early.around(position);
        let mut kept = [position, 0, 0, 0];
        let others = self.recent.into_iter().filter(|&p| p > self.next && self.early.around(p) != range);
        kept[1..].iter_mut().zip(others).for_each(|(place, p)| *place = p);
        self.recent = kept;
    }

    /// Returns the ranges that arrived early, the last changed first (RFC 2018, 4).
    pub fn blocks(&self, most: usize) -> Blocks {
        let mut blocks = Blocks::default();
        let ranges = self.recent.iter().filter(|&&p| p > self.next).filter_map(|&p| self.early.around(p));
        for (start, end) in ranges.take(most) {
            blocks.push((self.numbering.number(start), self.numbering.number(end)));
        }
        blocks
    }

    /// Returns the largest end of the window that this end could advertise now.
    fn reach(&self) -> i64 {
        self.edge().min(self.next + (0xffff << self.scale))
    }

    /// Returns the window field of a segment sent now. The end of the window moves back only by bytes that a scaled
    /// window cannot express. The receiver still accepts such bytes. The end advances in steps of at least a segment or
    /// half of the buffer (RFC 9293, 3.8.6.2.2).
    pub fn announce(&mut self, segment: usize) -> u16 {
        let reach = self.reach();
        let least = (self.ring.capacity() / 2).min(segment).max(1) as i64;
        let edge = if reach - self.announced >= least { reach } else { self.announced };
        let window = ((edge - self.next).max(0) >> self.scale).min(0xffff);
        self.announced = self.announced.max(self.next + (window << self.scale));
        window as u16
    }

    /// Returns the window field of a SYN, which is not scaled.
    pub fn announce_first(&mut self) -> u16 {
        let window = self.ring.capacity().min(0xffff);
        self.announced = self.announced.max(1 + window as i64);
        window as u16
    }

    /// Whether the program has read enough for a window update without a received segment. Half of the buffer is
    /// enough. Two segments are enough if they are a large part of the buffer, or if little of the advertised window
    /// remains (as in FreeBSD).
    pub fn wants_update(&self, segment: usize) -> bool {
        let (capacity, segment) = (self.ring.capacity() as i64, segment as i64);
        let gain = self.reach() - self.announced;
        let left = self.announced - self.next;
        let much = gain >= capacity / 4 || left <= capacity / 8 || capacity <= 8 * segment;
        gain > 0 && (2 * gain >= capacity || gain >= 2 * segment && much)
    }

    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let length = out.len().min(self.readable());
        if length > 0 {
            self.ring.read(self.read, &mut out[..length]);
            self.read += length as i64;
            if self.read == self.next && self.early.is_empty() {
                self.ring.restart(self.next);
            }
        }
        length
    }

    /// Frees the memory. The caller guarantees that no program reads again.
    pub fn clear(&mut self) {
        self.read = self.next - i64::from(self.is_finished());
        self.ring.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(receiver: &mut Receiver) -> Vec<u8> {
        let mut out = vec![0; receiver.readable()];
        receiver.read(&mut out);
        out
    }

    #[test]
    fn bytes_that_come_early_wait_for_those_before_them() {
        // The sequence numbers wrap around between the fourth and the fifth byte.
        let mut receiver = Receiver::new(u32::MAX - 4, 100);
        assert_eq!(receiver.take(5, b"efg", false), Received { out_of_order: true, ..Received::default() });
        assert_eq!(receiver.blocks(4).iter().collect::<Vec<_>>(), [(0, 3)]);
        receiver.take(9, b"ij", true);
        assert_eq!(
            receiver.blocks(4).iter().collect::<Vec<_>>(),
            [(4, 7), (0, 3)],
            "the FIN has a number too"
        );
        assert_eq!(receiver.blocks(1).iter().collect::<Vec<_>>(), [(4, 7)]);
        assert!(receiver.take(6, b"f", false).duplicate);
        let first = receiver.take(1, b"abcdef", false);
        assert_eq!((first.readable, first.finished, first.out_of_order), (7, false, true));
        assert_eq!(read(&mut receiver), b"abcdefg");
        assert!(receiver.take(3, b"c", false).duplicate);
        let last = receiver.take(8, b"h", false);
        assert_eq!((last.readable, last.finished), (3, true));
        assert_eq!((read(&mut receiver), receiver.expected()), (b"hij".to_vec(), 7));
        assert!(receiver.take(11, b"no more", false).beyond);
        // The FIN arrived early. Bytes after it are not accepted.
        let mut receiver = Receiver::new(0, 100);
        receiver.take(3, b"c", true);
        assert!(receiver.take(4, b"d", false).beyond && receiver.take(6, b"f", true).beyond);
        assert!(receiver.take(1, b"abcde", true).finished);
        assert_eq!(read(&mut receiver), b"abc");
        assert!(receiver.blocks(4).is_empty());
    }

    #[test]
    fn excess_bytes_are_cut_and_a_fin_needs_no_room() {
        let mut receiver = Receiver::new(0, 4);
        assert_eq!(receiver.take(1, b"abcdef", true).readable, 4);
        assert!(!receiver.is_finished(), "the end is behind bytes that were cut");
        assert!(receiver.take(5, b"e", false).beyond);
        assert_eq!(read(&mut receiver), b"abcd");
        assert!(!receiver.take(5, b"ef", false).beyond);
        receiver.take(7, b"gh", false);
        assert!(receiver.take(9, b"", true).finished, "with a full buffer");
        assert_eq!(read(&mut receiver), b"efgh");
    }

    #[test]
    fn the_windows_end_never_goes_back() {
        let mut receiver = Receiver::new(0, 4000);
        assert_eq!(receiver.announce_first(), 4000);
        receiver.take(1, &[7; 3000], false);
        assert_eq!(receiver.announce(1460), 1000);
        receiver.read(&mut [0; 500]);
        assert!(!receiver.wants_update(1460));
        assert_eq!(receiver.announce(1460), 1000, "500 bytes are no reason to open it");
        receiver.take(3001, &[7; 1000], false);
        assert_eq!(receiver.announce(1460), 0);
        receiver.read(&mut [0; 1500]);
        assert!(receiver.wants_update(1460), "half of the buffer");
        assert_eq!(receiver.announce(1460), 2000);
    }

    #[test]
    fn a_scaled_window_is_cut_to_what_it_can_say_and_more_is_taken() {
        assert_eq!([1, 65535, 65536, 131_071, 131_072, 1 << 30].map(scale_for), [0, 0, 1, 1, 2, 14]);
        let mut receiver = Receiver::new(0, 262_144);
        receiver.set_scale(3);
        assert_eq!(receiver.announce(1460), 32768);
        receiver.take(1, &[7; 3], false);
        assert_eq!(receiver.announce(1460), 32767, "5 of 8 bytes cannot be said");
        receiver.take(4, &[7; 262_141], false);
        assert_eq!((receiver.readable(), receiver.announce(1460)), (262_144, 0));
        // The window advertised to a peer without scaling is at most 64 KiB, every time.
        let mut receiver = Receiver::new(0, 262_144);
        assert_eq!(receiver.announce(1460), 65535);
        assert!(!receiver.wants_update(1460));
    }
}
