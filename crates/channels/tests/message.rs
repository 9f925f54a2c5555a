//! Tests the encoding of mailboxes.

use nicety_channels::*;
use proptest::prelude::*;

fn payload() -> impl Strategy<Value = Payload> {
    prop::collection::vec(any::<u8>(), 1..=PAYLOAD_BYTES).prop_map(|bytes| Payload::new(&bytes).unwrap())
}

fn page() -> impl Strategy<Value = Page> {
    (0..1u64 << 40, 0..PAGE_BYTES).prop_flat_map(|(frame, offset)| {
        (1..=PAGE_BYTES - offset)
            .prop_map(move |bytes| Page::new(frame << 12 | u64::from(offset), bytes).unwrap())
    })
}

fn list() -> impl Strategy<Value = PageList> {
    (prop::collection::vec(page(), 1..=LIST_PAGES), 0..1u32 << 30, 0..1u32 << 30).prop_map(
        |(pages, before, after)| {
            let bytes: u32 = pages.iter().map(|p| p.bytes()).sum();
            PageList::new(before + bytes + after, before, &pages).unwrap()
        },
    )
}

fn body() -> impl Strategy<Value = Body> {
    let status = prop::sample::select(vec![
        Status::Ok,
        Status::SizeMismatch,
        Status::KindMismatch,
        Status::Cancelled,
        Status::DmaFailed,
        Status::Abandoned,
        Status::PinFailed,
        Status::UnknownTarget,
        Status::TargetTaken,
    ]);
    prop_oneof![
        payload().prop_map(Body::Direct),
        list().prop_map(Body::Pages),
        (1..=u32::MAX).prop_map(Body::Offer),
        Just(Body::Cancel),
        Just(Body::GiveUp),
        any::<u32>().prop_map(|id| Body::Subscribe(TargetId(id))),
        Just(Body::Close),
        (status, any::<[u32; 3]>()).prop_map(|(status, [done, outstanding, expected])| {
            Body::Reply(Reply { status, done, outstanding, expected })
        }),
    ]
}

proptest! {
    #[test]
    fn encoded_messages_are_decoded(exchange: u16, stamp: u16, body in body()) {
        let message = Message { exchange, stamp, body };
        prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
    }

    /// Each message has exactly one encoding: if bytes can be decoded, the result encodes to the same bytes.
    #[test]
    fn any_bytes_are_a_message_or_an_error(
        body in body(),
        noise in prop::collection::vec((0..MAILBOX_BYTES, any::<u8>()), 0..4),
    ) {
        let mut bytes = Message { exchange: 1, stamp: 2, body }.encode();
        for (at, byte) in noise {
            bytes[at] = byte;
        }
        if let Ok(message) = Message::decode(&bytes) {
            prop_assert_eq!(message.encode(), bytes);
        }
    }

    #[test]
    fn noise_is_a_message_or_an_error(bytes in prop::array::uniform32(any::<[u8; 2]>())) {
        let mut mailbox = [0; MAILBOX_BYTES];
        mailbox.copy_from_slice(bytes.as_flattened());
        mailbox[0] = 1;
        if let Ok(message) = Message::decode(&mailbox) {
            prop_assert_eq!(message.encode(), mailbox);
        }
    }
}

/// The expected bytes are written by hand.
#[test]
fn mailboxes_have_these_bytes() {
    let direct = Body::Direct(Payload::new(&[0xAA, 0xBB]).unwrap());
    let bytes = Message { exchange: 0x0102, stamp: 0x0304, body: direct }.encode();
    assert_eq!(bytes[..12], [1, 1, 2, 0, 0x02, 0x01, 0x04, 0x03, 0xAA, 0xBB, 0, 0]);

    // Bytes 4 to 4095 of page 0x12345 have the page number 0x12345, the offset 4, and 4092 bytes (minus one).
    let pages = [Page::new(0x1234_5004, 4092).unwrap(), Page::new(0x7000, 1).unwrap()];
    let list = Body::Pages(PageList::new(8192, 4096 - 1, &pages).unwrap());
    let bytes = Message { exchange: 1, stamp: 1, body: list }.encode();
    assert_eq!(bytes[..8], [1, 2, 24, 0, 1, 0, 1, 0]);
    assert_eq!(bytes[8..16], [0, 0x20, 0, 0, 0xFF, 0x0F, 0, 0]);
    assert_eq!(bytes[16..24], 0xFFB0_0400_0001_2345u64.to_le_bytes());
    assert_eq!(bytes[24..32], 7u64.to_le_bytes());

    let reply = Reply { status: Status::DmaFailed, done: 1, outstanding: 2, expected: 3 };
    let bytes = Message { exchange: 0, stamp: 0, body: Body::Reply(reply) }.encode();
    assert_eq!(bytes[..20], [1, 8, 12, 4, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
}

/// Six page entries fill the 14 transfer registers completely.
#[test]
fn six_pages_fill_a_mailbox() {
    let pages = [Page::new(0, 4096).unwrap(); LIST_PAGES];
    let list = PageList::new(6 * 4096, 0, &pages).unwrap();
    assert_eq!(
        Message { exchange: 0, stamp: 0, body: Body::Pages(list) }.encode()[2] as usize,
        PAYLOAD_BYTES
    );
    assert!(PageList::new(7 * 4096, 0, &[pages[0]; 7]).is_err());
}

#[test]
fn errors_say_which_byte() {
    let good = Message { exchange: 1, stamp: 1, body: Body::Offer(9) }.encode();
    let with = |at: usize, byte: u8| {
        let mut bytes = good;
        bytes[at] = byte;
        Message::decode(&bytes).unwrap_err().to_string()
    };
    assert_eq!(with(0, 2), "mailbox version 2 at byte 0; the known version is 1");
    assert_eq!(with(1, 9), "no message has kind 9 (byte 1 of a mailbox)");
    assert_eq!(with(2, 5), "a message of this kind has no body of 5 bytes (byte 2 of a mailbox)");
    assert_eq!(with(3, 1), "a message of this kind has no status 1 (byte 3 of a mailbox)");
    assert_eq!(with(8, 0), "a message has at least 1 byte, but this mailbox names 0");
    assert_eq!(with(63, 1), "the bytes of a mailbox after its body must be zero");
    assert_eq!(
        Page::new(4095, 2).unwrap_err().to_string(),
        "2 bytes at bus address 0xfff are not 1 to 4096 bytes of one page below 2^52"
    );
    assert!(Page::new(0, 0).is_err() && Page::new(1 << 52, 1).is_err() && Page::new(0, 4097).is_err());
    assert_eq!(
        PageList::new(10, 4, &[Page::new(0, 7).unwrap()]).unwrap_err().to_string(),
        "1 pages of 7 bytes, after 4, are not 1 to 6 pages of a message of 10 bytes"
    );
    assert!(PageList::new(10, 4, &[]).is_err());
}
