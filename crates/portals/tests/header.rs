//! The bytes of a header.

mod common;

use common::put;
use nicety_portals::*;
use nicety_types::NodeId;
use proptest::prelude::*;

#[test]
fn the_layout_is_little_endian_and_fixed() {
    let header = Header {
        ack: AckRequest::Counting,
        source: NodeId(0x0102),
        pt: 3,
        match_bits: 0x1122_3344_5566_7788,
        ..put(0, 0x99)
    };
    let bytes = header.encode();
    assert_eq!(bytes[..8], [1, 1, 2, 0, 2, 1, 0, 0]);
    assert_eq!(bytes[12..16], [3, 0, 0, 0]);
    assert_eq!(bytes[16..25], [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x99]);
    assert_eq!(bytes[56..], [0; 8]);
}

#[test]
fn what_is_no_header_is_refused_with_the_byte_at_fault() {
    let good = put(1, 8).encode();
    let broken = |at: usize, value: u8| {
        let mut bytes = good;
        bytes[at] = value;
        Header::decode(&bytes).unwrap_err()
    };
    let cases = [
        (Header::decode(&good[..63]).unwrap_err(), HeaderError::Short(63), "has 64 bytes, here are 63"),
        (broken(0, 2), HeaderError::Version(2), "version 2 at byte 0"),
        (broken(1, 0), HeaderError::Kind(0), "no message has kind 0"),
        (broken(1, 8), HeaderError::Kind(8), "no message has kind 8"),
        (broken(2, 4), HeaderError::Ack(4), "no acknowledgement has number 4"),
        (broken(3, 9), HeaderError::Fail(9), "no failure has number 9"),
        (broken(63, 1), HeaderError::Reserved, "must be zero"),
    ];
    for (error, expected, text) in cases {
        assert_eq!(error, expected);
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// How many random cases to try: `usual`, or more where `PROPTEST_CASES` asks for a long run.
fn cases(usual: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    // The default is what PROPTEST_CASES says, and 256 without it.
    ProptestConfig { cases: usual.max(default.cases), ..default }
}

proptest! {
    #![proptest_config(cases(4000))]

    /// Any bytes are a header that encodes to the same bytes, or an error.
    #[test]
    fn bytes_are_a_header_or_an_error(
        mut bytes in prop::collection::vec(any::<u8>(), 0..80),
        small in any::<[bool; 5]>(),
    ) {
        // Most random bytes fail at the first; bring some of them into range.
        let ranges = [(1, 1), (1, 8), (0, 5), (0, 10)];
        for (at, (from, values)) in ranges.into_iter().enumerate() {
            if small[at] && at < bytes.len() {
                bytes[at] = from + bytes[at] % values;
            }
        }
        if small[4] && bytes.len() >= HEADER_BYTES {
            bytes[56..64].fill(0);
        }
        if let Ok(header) = Header::decode(&bytes) {
            prop_assert_eq!(&header.encode()[..], &bytes[..HEADER_BYTES]);
        }
    }

    #[test]
    fn a_header_survives_the_wire(
        kind in 0..7usize, ack in 0..4usize, fail in 0..9usize,
        words in any::<[u32; 3]>(), longs in any::<[u64; 5]>(),
    ) {
        use HeaderKind::*;
        let acks = [AckRequest::None, AckRequest::Full, AckRequest::Counting, AckRequest::OperationCompleted];
        let header = Header {
            kind: [Put, Get, Reply, Ack, Atomic, FetchAtomic, Swap][kind],
            ack: acks[ack],
            fail: FailType::ALL[fail],
            source: NodeId(words[0]),
            target: NodeId(words[1]),
            pt: words[2],
            match_bits: longs[0],
            length: longs[1],
            remote_offset: longs[2],
            hdr_data: longs[3],
            operation: longs[4],
        };
        prop_assert_eq!(Header::decode(&header.encode()), Ok(header));
    }

    /// Whatever a header says, a target takes or drops it, and what it took it can complete.
    #[test]
    fn any_header_may_arrive(
        kind in 0..7usize, ack in 0..4usize, near in any::<bool>(),
        pt in 0..3u32, longs in any::<[u64; 5]>(), options in any::<u32>(),
    ) {
        use HeaderKind::*;
        let acks = [AckRequest::None, AckRequest::Full, AckRequest::Counting, AckRequest::OperationCompleted];
        let mut b = common::bench();
        let options = MeOptions::from_bits_truncate(options);
        let entry = Me { ignore_bits: !0, ct: Some(b.ct), ..common::me(0, options) };
        b.append(entry);
        b.append_overflow(entry);
        let header = Header {
            kind: [Put, Get, Reply, Ack, Atomic, FetchAtomic, Swap][kind],
            ack: acks[ack],
            target: if near { common::NODE } else { NodeId(longs[4] as u32) },
            pt,
            match_bits: longs[0],
            length: longs[1],
            remote_offset: longs[2],
            operation: longs[3],
            ..put(0, 0)
        };
        for _ in 0..3 {
            if let Arrival::Matched(delivery) = b.ni.arrive(&header, &mut b.effects) {
                prop_assert!(delivery.mlength <= entry.length && delivery.start >= entry.start);
                prop_assert!(delivery.start + delivery.mlength <= entry.start + entry.length);
                b.complete(&delivery);
            }
        }
    }
}
