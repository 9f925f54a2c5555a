//! Tests the encoding of headers.

use crate::common;
use crate::common::put;
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
fn invalid_headers_are_refused_with_the_wrong_byte() {
    let good = put(1, 8).encode();
    let broken = |at: usize, value: u8| {
        let mut bytes = good;
        bytes[at] = value;
        Header::decode(&bytes).unwrap_err()
    };
    let cases = [
        (Header::decode(&good[..63]).unwrap_err(), HeaderError::Short(63), "has 64 bytes, not 63"),
        (broken(0, 2), HeaderError::Version(2), "version 2 at byte 0"),
        (broken(1, 0), HeaderError::Kind(0), "no message has kind 0"),
        (broken(1, 8), HeaderError::Kind(8), "no message has kind 8"),
        (broken(2, 4), HeaderError::Ack(4), "no acknowledgement has number 4"),
        (broken(3, 200), HeaderError::Fail(200), "no failure has number 200"),
        (broken(58, 2), HeaderError::List(2), "no list has number 2"),
        (broken(59, 1), HeaderError::Reserved, "must be zero"),
        (broken(56, 1), HeaderError::Atomic(1, 0), "operator 1 on type 0"),
        (broken(1, 5), HeaderError::Atomic(0, 0), "does not belong"),
    ];
    for (error, expected, text) in cases {
        assert_eq!(error, expected);
        assert!(error.to_string().contains(text), "{error}");
    }
}

/// Returns the byte that encodes an operator or type.
fn number(text: &str, names: impl Iterator<Item = &'static str>) -> u8 {
    1 + names.into_iter().position(|name| name == text).unwrap() as u8
}

#[test]
fn operators_belong_to_their_kind_and_lengths_to_their_type() {
    let atomic = |op, datatype| Some(Atomic::new(op, datatype).unwrap());
    let sum =
        Header { kind: HeaderKind::Atomic, atomic: atomic(AtomicOp::Sum, Datatype::Int32), ..put(1, 8) };
    let bytes = sum.encode();
    assert_eq!(bytes[56..60], [3, 5, 0, 0]);
    assert_eq!(Header::decode(&bytes), Ok(sum));
    let wrong = |header: Header| Header::decode(&header.encode()).unwrap_err();
    assert_eq!(wrong(Header { kind: HeaderKind::Swap, ..sum }), HeaderError::Atomic(3, 5));
    assert_eq!(wrong(Header { kind: HeaderKind::Put, ..sum }), HeaderError::Atomic(3, 5));
    let swap = atomic(AtomicOp::Swap, Datatype::Int32);
    assert_eq!(wrong(Header { atomic: swap, ..sum }), HeaderError::Atomic(11, 5));
    let error = wrong(Header { length: 6, ..sum });
    assert_eq!(error, HeaderError::AtomicLength(6));
    assert!(error.to_string().contains("6 bytes"), "{error}");
    // An invalid pair: a bitwise operator on doubles.
    let mut bytes = bytes;
    let bor = number("PTL_BOR", AtomicOp::ALL.iter().map(|op| op.name()));
    let double = number("PTL_DOUBLE", Datatype::ALL.iter().map(|datatype| datatype.name()));
    bytes[56..58].copy_from_slice(&[bor, double]);
    assert_eq!(Header::decode(&bytes), Err(HeaderError::Atomic(bor, double)));
    bytes[56..58].copy_from_slice(&[19, 1]);
    assert_eq!(Header::decode(&bytes), Err(HeaderError::Atomic(19, 1)));
}

#[test]
fn the_payload_of_a_message_follows_from_its_header() {
    use HeaderKind::{Ack, FetchAtomic, Get, Put, Reply, Swap};
    let atomic = |op| Some(Atomic::new(op, Datatype::Int32).unwrap());
    let header = |kind, atomic| Header { kind, atomic, ..put(1, 4) };
    for (header, bytes) in [
        (header(Put, None), 4),
        (header(Get, None), 0),
        (header(Reply, None), 4),
        (header(Ack, None), 0),
        (header(HeaderKind::Atomic, atomic(AtomicOp::Sum)), 4),
        (header(FetchAtomic, atomic(AtomicOp::Sum)), 4),
        (header(Swap, atomic(AtomicOp::Swap)), 4),
        (header(Swap, atomic(AtomicOp::Cswap)), 8),
    ] {
        assert_eq!(header.payload_bytes(), bytes, "{:?}", header.kind);
    }
}

/// Returns the number of random cases: `usual`, or more if `PROPTEST_CASES` asks for a long run.
fn cases(usual: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    // The default is `PROPTEST_CASES`, or 256 without it.
    ProptestConfig { cases: usual.max(default.cases), ..default }
}

/// Returns an operator and type if messages of this kind have them.
fn atomic_for(kind: HeaderKind, op: usize, datatype: usize) -> Option<Atomic> {
    let op = match kind {
        HeaderKind::Atomic | HeaderKind::FetchAtomic => AtomicOp::ALL[op % 10],
        HeaderKind::Swap => AtomicOp::ALL[10 + op % 8],
        _ => return None,
    };
    Atomic::new(op, Datatype::ALL[datatype]).or(Atomic::new(op, Datatype::Int16)).ok()
}

fn length_for(atomic: Option<Atomic>, length: u64) -> u64 {
    match atomic {
        Some(atomic) if atomic.op().has_operand() => atomic.datatype().size() as u64,
        Some(atomic) => length / 16 * 16 % (16 * atomic.datatype().size() as u64 * 1000),
        None => length,
    }
}

proptest! {
    #![proptest_config(cases(4000))]

    /// Decoding any bytes returns an error, or a header that encodes to the same bytes.
    #[test]
    fn bytes_are_a_header_or_an_error(
        mut bytes in prop::collection::vec(any::<u8>(), 0..80),
        small in any::<[bool; 6]>(),
    ) {
        // Most random bytes are invalid in the first field, so the test brings some fields into range.
        let ranges = [(1, 1), (1, 8), (0, 5), (0, 11)];
        for (at, (from, values)) in ranges.into_iter().enumerate() {
            if small[at] && at < bytes.len() {
                bytes[at] = from + bytes[at] % values;
            }
        }
        if small[4] && bytes.len() >= HEADER_BYTES {
            bytes[56..60].fill(0);
            if small[5] {
                // An atomic operation of small length.
                let (kind, op, datatype) = (5 + bytes[1] % 3, 1 + bytes[4] % 18, 1 + bytes[5] % 12);
                (bytes[1], bytes[56], bytes[57]) = (kind, op, datatype);
                bytes[24] %= 33;
                bytes[25..32].fill(0);
            }
        }
        if let Ok(header) = Header::decode(&bytes) {
            prop_assert_eq!(&header.encode()[..], &bytes[..HEADER_BYTES]);
        }
    }

    #[test]
    fn a_header_survives_the_wire(
        kind in 0..7usize, ack in 0..4usize, fail in 0..10usize,
        words in any::<[u32; 4]>(), longs in any::<[u64; 5]>(), op in 0..18usize, datatype in 0..12usize,
        overflow in any::<bool>(),
    ) {
        use HeaderKind::{Ack, FetchAtomic, Get, Put, Reply, Swap};
        let kind = [Put, Get, Reply, Ack, HeaderKind::Atomic, FetchAtomic, Swap][kind];
        let atomic = atomic_for(kind, op, datatype);
        let acks = [AckRequest::None, AckRequest::Full, AckRequest::Counting, AckRequest::OperationCompleted];
        let header = Header {
            kind,
            ack: acks[ack],
            fail: FailType::ALL[fail],
            list: if overflow { List::Overflow } else { List::Priority },
            source: NodeId(words[0]),
            target: NodeId(words[1]),
            pt: words[2],
            match_bits: longs[0],
            length: length_for(atomic, longs[1]),
            remote_offset: longs[2],
            hdr_data: longs[3],
            operation: longs[4],
            uid: words[3],
            atomic,
        };
        prop_assert_eq!(Header::decode(&header.encode()), Ok(header));
    }

    /// A target accepts or drops the message of any header, and can complete each message that it accepts.
    #[test]
    fn any_header_may_arrive(
        kind in 0..7usize, ack in 0..4usize, near in any::<bool>(), pt in 0..4u32,
        longs in any::<[u64; 5]>(), options in any::<u32>(),
        atomic in prop::option::of((0..18usize, 0..12usize)), fits in any::<bool>(), uid in 0..2u32,
    ) {
        use HeaderKind::{Ack, FetchAtomic, Get, Put, Reply, Swap};
        let kinds = [Put, Get, Reply, Ack, HeaderKind::Atomic, FetchAtomic, Swap];
        let acks = [AckRequest::None, AckRequest::Full, AckRequest::Counting, AckRequest::OperationCompleted];
        let limits = Limits { features: Features::all(), ..Limits::default() };
        let mut b = common::bench_with(limits);
        b.ni.pt_alloc_with(Some(1), Some(b.eq), PtOptions::FLOWCTRL).unwrap();
        let options = MeOptions::from_bits_truncate(options) - MeOptions::REDELIVER;
        let user = if longs[4] % 2 == 0 { User::Any } else { User::Id(1) };
        let entry = Me { ignore_bits: !0, ct: Some(b.ct), user, ..common::me(0, options) };
        for pt in [0, 1] {
            for list in [List::Priority, List::Overflow] {
                b.ni.me_append(pt, entry, list, &mut b.effects).unwrap();
            }
        }
        let atomic = atomic.and_then(|(op, datatype)| {
            let any = Atomic::new(AtomicOp::ALL[op], Datatype::ALL[datatype]).ok();
            if fits { atomic_for(kinds[kind], op, datatype) } else { any }
        });
        let header = Header {
            kind: kinds[kind],
            ack: acks[ack],
            target: if near { common::NODE } else { NodeId(longs[4] as u32) },
            pt,
            match_bits: longs[0],
            length: if fits { length_for(atomic, longs[1]) } else { longs[1] % 128 },
            remote_offset: longs[2] % 200,
            operation: longs[3],
            uid,
            atomic,
            ..put(0, 0)
        };
        for _ in 0..3 {
            if let Arrival::Matched(delivery) = b.ni.arrive(&header, &mut b.effects) {
                prop_assert!(header.kind.is_request() && Header::decode(&header.encode()).is_ok());
                prop_assert!(delivery.mlength <= entry.length && delivery.start >= entry.start);
                prop_assert!(delivery.start + delivery.mlength <= entry.start + entry.length);
                prop_assert_eq!(delivery.reply().is_some(), header.kind.wants_reply());
                if let Some(atomic) = header.atomic {
                    prop_assert_eq!(delivery.mlength % atomic.datatype().size() as u64, 0);
                }
                b.complete(&delivery);
            }
        }
    }
}
