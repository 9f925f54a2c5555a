//! The values of programs on a grid: 64-bit integers. Their sums modulo 2^64 are exact in any order.

use nicety::{Buffer, Error};

/// Bytes of a value.
pub(super) const BYTES: u64 = 8;

/// Returns the initial value at `index` of a rank's stream `stream`. It is the output function of SplitMix64, which mixes all
/// arguments, so equal values are improbable.
pub(super) fn initial(seed: u64, rank: u32, stream: u64, index: u64) -> u64 {
    [u64::from(rank), stream, index].into_iter().fold(seed, |state, part| {
        let mixed = (state ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

/// Returns all values in a buffer.
pub(super) fn read(buffer: &Buffer) -> Vec<u64> {
    let bytes = buffer.read(0, buffer.len());
    let (values, _) = bytes.as_chunks();
    values.iter().map(|value| u64::from_le_bytes(*value)).collect()
}

/// Fills a buffer with values.
pub(super) fn write(buffer: &Buffer, values: impl IntoIterator<Item = u64>) {
    let bytes: Vec<u8> = values.into_iter().flat_map(u64::to_le_bytes).collect();
    buffer.write(0, &bytes);
}

/// Compares the values in a buffer with the expected values.
///
/// # Errors
/// When a value is wrong. The error has the first wrong value, and `place` names its owner.
pub(super) fn check(buffer: &Buffer, expected: &[u64], place: impl Fn() -> String) -> Result<(), Error> {
    let found = read(buffer);
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => Err(Error::Program(format!(
            "{} is wrong from value {at} on: {:#x} instead of {:#x}",
            place(),
            found[at],
            expected[at]
        ))),
    }
}
