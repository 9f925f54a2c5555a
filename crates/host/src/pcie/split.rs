//! The division of transfers into TLPs.

use super::spec::BOUNDARY;

/// The part of a transfer that one TLP moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Offset of the first byte in the transfer.
    pub(super) offset: u64,
    /// Number of bytes.
    pub(super) len: u64,
    /// Number of bytes of the doublewords that hold the piece, since payload is padded to doublewords. An empty piece
    /// has one doubleword with no byte enabled (Transaction Layer, First/Last DW Byte Enables Rules).
    pub(super) padded: u64,
}

/// Cuts a transfer of `bytes` bytes at `address` into pieces. `reach` returns the end address of a piece from its start
/// address. An empty transfer is one piece.
fn cut(address: u64, bytes: u64, reach: impl Fn(u64) -> u64) -> impl Iterator<Item = Piece> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let offset = next?;
        let at = address + offset;
        let end = reach(at).min(address + bytes);
        let padded = (end.next_multiple_of(4) - at / 4 * 4).max(4);
        next = Some(end - address).filter(|&done| done < bytes);
        Some(Piece { offset, len: end - at, padded })
    })
}

/// Cuts a transfer into requests of at most `most` bytes, a power of two up to 4 KiB. No request crosses a boundary of
/// 4 KiB. The limit applies to the length field, which counts doublewords. So a request that begins inside a doubleword
/// has fewer bytes. A piece begins at the end of the previous piece, at any alignment.
pub(super) fn requests(address: u64, bytes: u64, most: u64) -> impl Iterator<Item = Piece> {
    cut(address, bytes, move |at| (at / 4 * 4 + most).min((at / BOUNDARY + 1) * BOUNDARY))
}

/// Cuts the answer to one request into completions of at most `most` bytes. Each completion except the last ends at a
/// multiple of `rcb` (Transaction Layer, Completion Rules, Read Completion Boundary).
pub(super) fn completions(address: u64, bytes: u64, most: u64, rcb: u64) -> impl Iterator<Item = Piece> {
    debug_assert!(rcb <= most, "a piece reaches the next multiple");
    cut(address, bytes, move |at| (at + most) / rcb * rcb)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(pieces: impl Iterator<Item = Piece>) -> Vec<u64> {
        pieces.map(|p| p.len).collect()
    }

    #[test]
    fn requests_are_cut_at_their_size_and_at_4_kib() {
        assert_eq!(lengths(requests(0x1000, 600, 256)), [256, 256, 88]);
        assert_eq!(lengths(requests(0x1f80, 600, 256)), [128, 256, 216]);
        // Pieces are counted from the start of the transfer, 100 bytes into a page, and not from multiples of the size.
        assert_eq!(lengths(requests(0x1064, 4096, 2048)), [2048, 1948, 100]);
        assert_eq!(lengths(requests(0x1fff, 2, 512)), [1, 1]);
        assert_eq!(lengths(requests(0x1000, 0, 512)), [0]);
        // 128 bytes from the second byte of a doubleword would need 33 doublewords.
        assert_eq!(lengths(requests(0x1001, 256, 128)), [127, 128, 1]);
    }

    #[test]
    fn completions_end_on_the_boundary() {
        assert_eq!(lengths(completions(0x1000, 512, 256, 64)), [256, 256]);
        // The read begins 4 bytes into a line. The largest completion that ends at a multiple of 64 has 252 bytes.
        assert_eq!(lengths(completions(0x1004, 512, 256, 64)), [252, 256, 4]);
        assert_eq!(lengths(completions(0x1044, 300, 256, 128)), [188, 112]);
        assert_eq!(lengths(completions(0x1020, 200, 64, 64)), [32, 64, 64, 40]);
        assert_eq!(lengths(completions(0x1010, 20, 256, 64)), [20]);
        assert_eq!(lengths(completions(0x1010, 0, 256, 64)), [0]);
    }

    #[test]
    fn payload_is_whole_doublewords() {
        let padded = |address, bytes| requests(address, bytes, 256).map(|p| p.padded).sum::<u64>();
        assert_eq!(padded(0x1000, 8), 8);
        assert_eq!(padded(0x1001, 8), 12);
        assert_eq!(padded(0x1003, 1), 4);
        assert_eq!(padded(0x1003, 2), 8);
        assert_eq!(padded(0x1003, 0), 4);
        assert_eq!(padded(0x1000, 0), 4);
        assert_eq!(padded(0x1fff, 2), 8);
    }
}
