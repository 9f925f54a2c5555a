//! The binary format: its layout, and damaged files.

use crate::schedules::{any_schedule, cases, packed, read, written};
use nicety_goal::{ReadError, Schedule, binary};
use proptest::prelude::*;

fn unpacked(bytes: &[u8]) -> Result<Schedule, ReadError> {
    binary::read(bytes, &mut |_| true)
}

fn refused(bytes: &[u8]) -> String {
    unpacked(bytes).unwrap_err().to_string()
}

const GOAL: &str = "num_ranks 2\nrank 0 {\na: send 258b to 1 tag 3 cpu 1 nic 2\nb: calc 7\nb requires a\nb irequires a\n}\n\
                    rank 1 {\nrecv 258b from -1 tag -1\n}\n";

#[test]
fn the_format_is_that_of_txt2bin() {
    let mut expected = Vec::new();
    expected.extend(4223_u64.to_le_bytes());
    expected.extend(2_u32.to_le_bytes());
    expected.extend([1, 2]);
    // Offsets are counted from byte 8. The head and the table have 6 + 32 bytes. The first block has 8 + 4 + 2 * 39 + 2 * 4
    // bytes, and the second block has 8 + 4 + 39 bytes.
    for offset in [38_u64, 136, 136, 187] {
        expected.extend(offset.to_le_bytes());
    }
    expected.extend([2_u32, 1, 0].map(u32::to_le_bytes).concat());
    let node =
        |dependencies: u32, kind: u8, peer: u32, size: u64, tag: u32, place: [u8; 2], edges: [u32; 4]| {
            let mut bytes = dependencies.to_le_bytes().to_vec();
            bytes.push(kind);
            bytes.extend(peer.to_le_bytes());
            bytes.extend(size.to_le_bytes());
            bytes.extend(tag.to_le_bytes());
            bytes.extend(place);
            bytes.extend(edges.map(u32::to_le_bytes).concat());
            bytes
        };
    expected.extend(node(0, 1, 1, 258, 3, [1, 2], [1, 0, 1, 1]));
    expected.extend(node(2, 3, 0, 7, 0, [0, 0], [0, 2, 0, 2]));
    expected.extend([1_u32, 1].map(u32::to_le_bytes).concat());
    expected.extend([1_u32, 1, 0].map(u32::to_le_bytes).concat());
    expected.extend(node(0, 2, u32::MAX, 258, u32::MAX, [0, 0], [0, 0, 0, 0]));
    assert_eq!(packed(&read(GOAL)), expected);
    assert_eq!(packed(&unpacked(&expected).unwrap()), expected);
}

#[test]
fn a_file_may_be_cut_off_anywhere() {
    let whole = packed(&read(GOAL));
    for length in 0..whole.len() {
        let text = refused(&whole[..length]);
        assert!(text.ends_with("the file is cut off here"), "{length}: {text}");
    }
    assert!(refused(&[&whole[..], b"x"].concat()).ends_with("the file has more bytes after the last rank"));
}

/// Returns the file with these bytes at this place.
fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = packed(&read(GOAL));
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn contradictions_are_told() {
    let block = 8 + 38;
    for (file, expected) in [
        (
            with(0, &4223_u64.to_be_bytes()),
            "byte 0: the file is from a machine with another byte order; convert it to text on that machine",
        ),
        (with(0, &[1]), "byte 0: the file is no binary schedule: it does not begin with 4223"),
        (with(8, &[0; 4]), "byte 14: a schedule has 1 to 4294967294 ranks, not 0"),
        (
            with(14, &[39]),
            "byte 30: the block of rank 0 goes from 39 to 136, but the block before it ends at 38",
        ),
        (
            with(30, &[0]),
            "byte 46: the block of rank 1 goes from 0 to 187, but the block before it ends at 136",
        ),
        (with(block, &[3]), "byte 54: rank 0: 3 operations do not fit a block of 98 bytes"),
        (
            with(block + 4, &[3]),
            "byte 54: rank 0: 2 operations, 3 of them without dependencies; a rank has at most 1073741824",
        ),
        (
            with(block + 8, &[1]),
            "byte 144: rank 0: operation 0 has no dependencies, but is not in its place in the list of \
             roots",
        ),
        (with(block + 12, &[1]), "byte 144: rank 0: operation 0 claims 1 dependencies, but has 0"),
        (
            with(block + 12 + 4, &[4]),
            "byte 97: rank 0: operation 0 is of type 4; types are 1 (send), 2 (recv) and 3 (calc)",
        ),
        (with(block + 12 + 5, &[2]), "byte 97: rank 0: operation 0: there is no rank 2; the last one is 1"),
        (
            with(block + 12 + 5, &[255; 4]),
            "byte 97: rank 0: operation 0: there is no rank 4294967295; the last one is 1",
        ),
        (
            with(block + 12 + 21, &[2]),
            "byte 97: rank 0: operation 0 has a CPU or an interface above the maximum that the file \
             declares",
        ),
        (
            with(block + 12 + 35, &[0]),
            "byte 97: rank 0: operation 0: its dependents do not follow those of the previous operation",
        ),
        (
            with(block + 12 + 23, &[0]),
            "byte 97: rank 0: operation 0: its dependents do not follow those of the previous operation",
        ),
        (
            with(block + 12 + 39 + 23, &[9]),
            "byte 136: rank 0: the operations have 11 dependents, but the block has room for 2",
        ),
        (
            with(block + 90, &[2]),
            "byte 140: rank 0: operation 2 depends on operation 0, but the rank has only 2 operations",
        ),
    ] {
        assert_eq!(refused(&file), expected);
    }
}

#[test]
fn a_million_million_operations_that_are_not_there_take_no_memory() {
    let head = |ranks: u32| [&4223_u64.to_le_bytes()[..], &ranks.to_le_bytes(), &[0, 0]].concat();
    // The head gives the largest number of ranks. The file ends after the first rank's place.
    let file = [head(u32::MAX - 1), (6 + (u64::from(u32::MAX) - 1) * 16).to_le_bytes().repeat(2)].concat();
    assert!(refused(&file).ends_with("the file is cut off here"));
    // The table gives a block of up to 4 x 10^12 bytes, with many operations or none. The file ends after the first 8 bytes of
    // the block.
    for (ops, length) in
        [(1_u32 << 30, (8 + 39_u64) << 30), (u32::MAX, 8 + 39 * u64::from(u32::MAX)), (0, 1 << 42)]
    {
        let mut file = head(1);
        file.extend(22_u64.to_le_bytes());
        file.extend((22 + length).to_le_bytes());
        file.extend(ops.to_le_bytes());
        file.extend(0_u32.to_le_bytes());
        refused(&file);
    }
    let peak = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = peak
        .lines()
        .find_map(|line| line.strip_prefix("VmPeak:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    assert!(peak.is_none_or(|kb| kb < 8 << 20), "{peak:?} kB of memory");
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn no_change_makes_it_panic(
        schedule in any_schedule(),
        changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 0..4),
        length in any::<Option<u16>>(),
    ) {
        let mut bytes = packed(&schedule);
        for (at, byte) in changes {
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        if let Some(length) = length {
            bytes.truncate(usize::from(length) % (bytes.len() + 1));
        }
        if let Ok(schedule) = unpacked(&bytes) {
            // An accepted file is consistent.
            prop_assert_eq!(written(&read(&written(&schedule))), written(&schedule));
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = unpacked(&bytes);
        let _ = unpacked(&[&4223_u64.to_le_bytes()[..], &1_u32.to_le_bytes(), &bytes].concat());
    }
}
