//! Packets of GDB's remote protocol, sorted out of the bytes of a connection.
//!
//! The stub ends a session at a damaged packet. Here such packets are told from whole ones, for the answers that the protocol asks.

/// Bytes of the longest packet, with its frame.
pub(crate) const PACKET_BYTES: usize = 16_384;

/// Input of a debugger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A whole packet, with its frame.
    Packet(Vec<u8>),
    /// An interrupt of the run.
    Interrupt,
    /// The last answer was damaged on its way.
    Again,
    /// A packet with another checksum than that of its bytes.
    Damaged,
    /// A packet that is longer than the longest.
    TooLong,
}

#[derive(Debug, Default)]
enum State {
    /// Between packets.
    #[default]
    Between,
    /// In a packet.
    Inside,
    /// In the two digits of its checksum.
    Checksum,
}

/// The packet that is being received.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    state: State,
    bytes: Vec<u8>,
    /// The checksum of its bytes, and the position of the received one.
    sum: u8,
    end: usize,
    too_long: bool,
}

impl Packets {
    /// Takes a byte. Returns the input that it completes.
    pub(crate) fn take(&mut self, byte: u8) -> Option<Input> {
        match (&self.state, byte) {
            // No packet has this byte inside: the rest of an interrupted one is lost.
            (_, b'$') => {
                *self = Packets { state: State::Inside, bytes: vec![byte], ..Packets::default() };
                None
            }
            (State::Between, 3) => Some(Input::Interrupt),
            (State::Between, b'-') => Some(Input::Again),
            (State::Between, _) => None,
            (State::Inside, b'#') => {
                self.push(byte);
                (self.state, self.end) = (State::Checksum, self.bytes.len());
                None
            }
            (State::Inside, _) => {
                self.sum = self.sum.wrapping_add(byte);
                self.push(byte);
                None
            }
            (State::Checksum, _) => {
                self.bytes.push(byte);
                if self.bytes.len() < self.end + 2 {
                    return None;
                }
                let packet = std::mem::take(self);
                Some(packet.complete())
            }
        }
    }

    fn push(&mut self, byte: u8) {
        // Room for the checksum.
        match self.bytes.len() + 2 < PACKET_BYTES {
            true => self.bytes.push(byte),
            false => self.too_long = true,
        }
    }

    fn complete(self) -> Input {
        let digits = std::str::from_utf8(&self.bytes[self.end..]).ok();
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(sum) if sum == self.sum && self.too_long => Input::TooLong,
            Some(sum) if sum == self.sum => Input::Packet(self.bytes),
            _ => Input::Damaged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8]) -> Vec<Input> {
        let mut packets = Packets::default();
        bytes.iter().filter_map(|&byte| packets.take(byte)).collect()
    }

    fn framed(body: &[u8]) -> Vec<u8> {
        let sum = body.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        [b"$", body, format!("#{sum:02x}").as_bytes()].concat()
    }

    #[test]
    fn damaged_and_interrupted_packets_are_told_from_whole_ones() {
        let whole = |body: &[u8]| Input::Packet(framed(body));
        assert_eq!(all(b"+$g#67-\x03"), [whole(b"g"), Input::Again, Input::Interrupt]);
        assert_eq!(all(b"$g#68$g#6g$g#67"), [Input::Damaged, Input::Damaged, whole(b"g")]);
        // A packet begins inside of another one, and in its checksum.
        assert_eq!(all(b"$m1c4$g#67$g#6$?#3f"), [whole(b"g"), whole(b"?")]);
        assert_eq!(all(b"$#00"), [whole(b"")]);
        assert_eq!(all(b"$g#+7"), [Input::Damaged]);
        assert_eq!(all(b"hello\r\n"), []);
    }

    #[test]
    fn the_longest_packet_fits() {
        let longest = vec![b'X'; PACKET_BYTES - 4];
        assert_eq!(all(&framed(&longest)), [Input::Packet(framed(&longest))]);
        let longer = vec![b'X'; PACKET_BYTES - 3];
        assert_eq!(all(&framed(&longer)), [Input::TooLong]);
    }

    proptest! {
        /// Whatever comes before it, a whole packet arrives.
        #[test]
        fn a_packet_behind_any_bytes_is_whole(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let inputs = all(&[&bytes[..], &framed(b"qC")].concat());
            prop_assert_eq!(inputs.last(), Some(&Input::Packet(framed(b"qC"))));
        }
    }
}
