//! Sequence numbers, 32 bits on the wire, wrap around; positions in a stream do not.
//!
//! The SYN is at position 0, the first byte at 1, the FIN after the last byte. Sequence numbers appear only in
//! segments. All comparisons are between positions.

/// Converts between positions and sequence numbers of one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbering {
    /// The sequence number of the SYN.
    first: u32,
}

impl Numbering {
    pub fn from(first: u32) -> Numbering {
        Numbering { first }
    }

    /// Returns the sequence number of a position.
    pub fn number(self, position: i64) -> u32 {
        self.first.wrapping_add(position as u32)
    }

    /// Returns the position with this sequence number that is nearest to `near`.
    pub fn position(self, number: u32, near: i64) -> i64 {
        near + i64::from(number.wrapping_sub(self.number(near)) as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_go_on_where_numbers_come_round() {
        let numbering = Numbering::from(u32::MAX - 1);
        assert_eq!([0, 1, 2, 3].map(|p| numbering.number(p)), [u32::MAX - 1, u32::MAX, 0, 1]);
        assert_eq!(numbering.position(1, 0), 3);
        assert_eq!(numbering.position(u32::MAX, 3), 1);
        assert_eq!(numbering.position(u32::MAX - 2, 0), -1, "before the SYN");
        // A position after the sequence numbers have wrapped around three times.
        let far = 3 * (1 << 32) + 7;
        assert_eq!(numbering.position(numbering.number(far), far - 1000), far);
        assert_eq!(numbering.position(numbering.number(far), far + 1000), far);
    }
}
