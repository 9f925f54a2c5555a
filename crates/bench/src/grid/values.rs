//! The numbers of programs on a grid: 64-bit integers, with exact sums in any order, modulo 2^64.

use nicety::{Buffer, Error};

/// Bytes of a value.
pub(super) const BYTES: u64 = 8;

/// Returns an initial value of a rank's stream `stream`, at `index`. Each is a well mixed function of all arguments (the output
/// function of SplitMix64), so that no two are equal by construction.
pub(super) fn initial(seed: u64, rank: u32, stream: u64, index: u64) -> u64 {
    [u64::from(rank), stream, index].into_iter().fold(seed, |state, part| {
        let mixed = (state ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

/// Returns the values in a buffer.
pub(super) fn read(buffer: &Buffer) -> Vec<u64> {
    let bytes = buffer.read(0, buffer.len());
    let (values, _) = bytes.as_chunks();
    values.iter().map(|value| u64::from_le_bytes(*value)).collect()
}

/// Writes values into a buffer of their length.
pub(super) fn write(buffer: &Buffer, values: impl IntoIterator<Item = u64>) {
    let bytes: Vec<u8> = values.into_iter().flat_map(u64::to_le_bytes).collect();
    buffer.write(0, &bytes);
}

/// Checks the values of a buffer.
///
/// # Errors
/// Names the first wrong value; `place` names its owner.
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
