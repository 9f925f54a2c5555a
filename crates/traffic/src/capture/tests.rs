//! Tests with captures written by hand, whole and damaged, and with arbitrary bytes.

use super::*;
use proptest::prelude::*;

fn word(value: u32, big: bool) -> [u8; 4] {
    if big { value.to_be_bytes() } else { value.to_le_bytes() }
}

fn pcap(big: bool, magic: u32, link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in [magic, if big { 2 << 16 | 4 } else { 4 << 16 | 2 }, 0, 0, 65_535, link] {
        bytes.extend(word(value, big));
    }
    for packet in packets {
        for value in [7, 8, packet.len() as u32, packet.len() as u32 + 5] {
            bytes.extend(word(value, big));
        }
        bytes.extend(packet);
    }
    bytes
}

fn a_block(kind: u32, body: &[u8], big: bool) -> Vec<u8> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let length = word((12 + body.len() + padding) as u32, big);
    [&word(kind, big)[..], &length, body, &vec![0; padding], &length].concat()
}

fn section(big: bool) -> Vec<u8> {
    let version = if big { [0, 1, 0, 0] } else { [1, 0, 0, 0] };
    let body = [&word(0x1a2b_3c4d, big)[..], &version, &[0xff; 8]].concat();
    a_block(0x0a0d_0d0a, &body, big)
}

fn interface(link: u16, snap: u32, big: bool) -> Vec<u8> {
    let link = if big { link.to_be_bytes() } else { link.to_le_bytes() };
    a_block(1, &[&link[..], &[0, 0], &word(snap, big)].concat(), big)
}

fn enhanced(interface: u32, packet: &[u8], big: bool) -> Vec<u8> {
    let head = [interface, 1, 2, packet.len() as u32, 1500].map(|value| word(value, big)).concat();
    a_block(6, &[&head[..], packet].concat(), big)
}

fn pcapng(big: bool, link: u16, packets: &[Vec<u8>]) -> Vec<u8> {
    let blocks = packets.iter().flat_map(|packet| enhanced(0, packet, big));
    [section(big), a_block(77, b"what else", big), interface(link, 0, big)]
        .concat()
        .into_iter()
        .chain(blocks)
        .collect()
}

type Packets = Vec<(u32, Vec<u8>)>;

/// Returns all packets, and the damage after them, if any.
fn all(bytes: &[u8]) -> Result<(Packets, Option<Damage>), Damage> {
    let mut capture = Capture::new(bytes)?;
    let mut packets = Vec::new();
    loop {
        match capture.next_packet() {
            None => return Ok((packets, None)),
            Some(Ok(packet)) => packets.push((packet.link, packet.bytes.to_vec())),
            Some(Err(damage)) => {
                assert_eq!(capture.packets(), packets.len() as u64);
                assert!(capture.next_packet().is_none());
                return Ok((packets, Some(damage)));
            }
        }
    }
}

fn some() -> Vec<Vec<u8>> {
    vec![vec![1, 2, 3], vec![], (0..200).collect()]
}

#[test]
fn both_formats_in_both_orders() {
    for big in [false, true] {
        for magic in [0xa1b2_c3d4, 0xa1b2_3c4d] {
            let expected = some().into_iter().map(|packet| (113, packet)).collect();
            // Without frame check sequences, the bits above the link type are 0.
            assert_eq!(all(&pcap(big, magic, 0x1400_0071, &some())), Ok((expected, None)));
        }
        let expected = some().into_iter().map(|packet| (1, packet)).collect();
        assert_eq!(all(&pcapng(big, 1, &some())), Ok((expected, None)));
    }
}

#[test]
fn sections_interfaces_and_older_blocks() {
    let simple = a_block(3, &[&word(300, true)[..], &[5; 8]].concat(), true);
    let old = [&[0, 1, 0, 0][..], &[0; 8], &word(3, true), &word(3, true), &[7, 7, 7]].concat();
    let bytes = [
        pcapng(false, 1, &some()[..1]),
        section(true),
        interface(101, 8, true),
        interface(276, 0, true),
        simple,
        a_block(2, &old, true),
        enhanced(1, &[9], true),
    ]
    .concat();
    let expected = vec![(1, vec![1, 2, 3]), (101, vec![5; 8]), (276, vec![7; 3]), (276, vec![9])];
    assert_eq!(all(&bytes), Ok((expected, None)));
}

#[test]
fn damage_names_its_packet_and_keeps_the_packets_before() {
    let whole = pcap(false, 0xa1b2_c3d4, 1, &some());
    let told = |bytes: &[u8]| {
        let (packets, damage) = all(bytes).unwrap();
        (packets.len(), damage.unwrap().to_string())
    };
    let last = whole.len() - 200;
    assert_eq!(
        told(&whole[..whole.len() - 7]),
        (2, format!("at packet 3, byte {}: the file ends 7 bytes before the end of the packet", last - 16))
    );
    assert_eq!(
        told(&whole[..last - 3]),
        (
            2,
            format!(
                "at packet 3, byte {}: the file ends 3 bytes before the end of a packet's header",
                last - 16
            )
        )
    );
    let mut long = whole.clone();
    long[24 + 8..24 + 12].copy_from_slice(&word(300_000, false));
    assert_eq!(
        told(&long),
        (0, "at packet 1, byte 24: a packet of 300000 bytes; the maximum is 262144".into())
    );
    let ng = pcapng(true, 1, &some());
    let from = ng.len() - 232;
    assert_eq!(
        told(&ng[..ng.len() - 2]),
        (2, format!("at packet 3, byte {from}: the file ends 2 bytes before the end of a block"))
    );
    for (at, value, text) in [
        (4, 230, "a block of 230 bytes; the length has to be a multiple of 4 from 12"),
        (4, 0, "a block of 0 bytes"),
        (8, 1, "a packet of interface 1, but the number of interfaces is 1"),
        (20, 201, "a packet of 201 bytes in a block with room for 200"),
        (228, 0, "a block with the length 232 at its start, but 0 at its end"),
    ] {
        let mut bytes = ng.clone();
        bytes[from + at..from + at + 4].copy_from_slice(&word(value, true));
        let (packets, damage) = told(&bytes);
        assert!(damage.starts_with(&format!("at packet 3, byte {from}: ")), "{damage}");
        assert!(packets == 2 && damage.contains(text), "{damage}");
    }
    for (bytes, text) in [
        (&b""[..], "the file is empty"),
        (&b"ab"[..], "too short for a capture"),
        (&b"abcdefgh"[..], "this is no capture; pcap and pcapng can be read"),
        (
            &b"BZh91AY"[..],
            "this is compressed by bzip2; pcap and pcapng can be read, also compressed by gzip or zstd",
        ),
        (&b"snoop\0\0\0"[..], "this is a capture of snoop; "),
        (
            &[0x34, 0xcd, 0xb2, 0xa1, 2, 0, 4, 0][..],
            "this is a modified pcap with longer records (Kuznetzov's); ",
        ),
        (&whole[..20], "the file ends within its header"),
    ] {
        assert!(all(bytes).unwrap_err().to_string().contains(text));
    }
}

/// Returns an IP packet with this source address.
fn ip(source: Source) -> Vec<u8> {
    match source {
        Source::V4(address) => [&[0x45; 12][..], &address, &[9; 4]].concat(),
        Source::V6(address) => [&[0x60; 8][..], &address, &[9; 16]].concat(),
    }
}

#[test]
fn where_packets_come_from() {
    let (four, six) = (Source::V4([10, 0, 0, 7]), Source::V6([0xfe; 16]));
    for (source, kind) in [(four, [8u8, 0]), (six, [0x86, 0xdd])] {
        let ip = ip(source);
        let tag = [0x81u8, 0, 0, 5];
        for (link, before) in [
            (1, [&[0; 12][..], &kind].concat()),
            (1, [&[0; 12][..], &tag, &kind].concat()),
            (1, [&[0; 12][..], &[0x88, 0xa8, 0, 1], &tag, &tag, &kind].concat()),
            (113, [&[0; 14][..], &kind].concat()),
            (276, [&kind[..], &[0; 18]].concat()),
            (101, vec![]),
            (0, vec![2, 0, 0, 0]),
            (108, vec![0, 0, 0, 30]),
        ] {
            let packet = [before, ip.clone()].concat();
            assert_eq!(source_of(link, &packet), Ok(source), "{link}");
            for end in 0..packet.len() - 16 {
                assert!(source_of(link, &packet[..end]).is_err(), "{link} {end}");
            }
        }
    }
    let arp = [&[0; 12][..], &[8, 6], &[0; 28]].concat();
    assert_eq!(source_of(1, &arp), Err(Skipped::NotIp));
    assert_eq!(source_of(101, &[0x55; 40]), Err(Skipped::NotIp));
    assert_eq!(source_of(1, &arp[..13]), Err(Skipped::Cut));
    assert_eq!(source_of(105, &ip(four)), Err(Skipped::Link));
}

proptest! {
    #[test]
    fn written_files_are_read(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..90), 0..20),
        big: bool,
        link in 0u16..300,
    ) {
        let expected: Vec<_> = packets.iter().map(|packet| (u32::from(link), packet.clone())).collect();
        prop_assert_eq!(all(&pcap(big, 0xa1b2_c3d4, link.into(), &packets)), Ok((expected.clone(), None)));
        prop_assert_eq!(all(&pcapng(big, link, &packets)), Ok((expected, None)));
    }

    /// From a truncated capture, the reader returns all whole packets. A changed capture must not cause a panic.
    #[test]
    fn damaged_captures_are_read_as_far_as_they_are_whole(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 1..8),
        ng: bool,
        end in 0usize..700,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let whole = if ng { pcapng(false, 1, &packets) } else { pcap(false, 0xa1b2_c3d4, 1, &packets) };
        let cut = &whole[..end.min(whole.len())];
        if let Ok((read, damage)) = all(cut) {
            for ((link, packet), written) in read.iter().zip(&packets) {
                prop_assert_eq!((*link, packet), (1, written));
            }
            prop_assert!(read.len() == packets.len() || damage.is_some() || cut.len() < whole.len());
        }
        let mut bytes = cut.to_vec();
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        if let Ok((packets, _)) = all(&bytes) {
            for (link, packet) in &packets {
                let _ = source_of(*link, packet);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        magic in prop::sample::select(vec![0xa1b2_c3d4u32, 0xd4c3_b2a1, 0xa1b2_3c4d, 0x0a0d_0d0a, 0]),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        link in 0u32..300,
    ) {
        drop(all(&[&magic.to_be_bytes()[..], &bytes].concat()));
        let _ = source_of(link, &bytes);
    }
}

#[test]
fn ip_is_behind_every_tag() {
    let tagged = |tags: usize| {
        let mut frame = vec![0; 12];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 7]));
        frame.extend([0x08, 0, 0x45, 1, 2]);
        frame
    };
    for tags in 0..4 {
        assert_eq!(ip_of(1, &tagged(tags)), Some(&[0x45, 1, 2][..]), "{tags} tags");
    }
    let mut cooked = vec![0; 14];
    cooked.extend([0x86, 0xdd, 0x60, 9]);
    assert_eq!(ip_of(113, &cooked), Some(&[0x60, 9][..]));
    assert_eq!(ip_of(1, &tagged(1)[..15]), None);
}

/// Returns the time and the length on the link of each packet.
fn times(bytes: &[u8]) -> Vec<(Option<i128>, u64)> {
    let mut capture = Capture::new(bytes).unwrap();
    let mut found = Vec::new();
    while let Some(packet) = capture.next_packet() {
        let packet = packet.unwrap();
        found.push((packet.time, packet.length));
    }
    found
}

#[test]
fn times_have_the_resolution_that_the_capture_says() {
    // The time is 7 seconds and 8 units of the fraction.
    for (magic, fraction) in [(0xa1b2_c3d4, 8_000_000), (0xa1b2_3c4d, 8_000)] {
        let bytes = pcap(true, magic, 1, &[vec![1, 2, 3]]);
        assert_eq!(times(&bytes), [(Some(7_000_000_000_000 + fraction), 8)]);
    }
    // The time is 2^32 + 2 units of the interface.
    let units = (1i128 << 32) + 2;
    let with = |resolution: Option<u8>, big: bool| {
        let option = resolution.map_or(Vec::new(), |value| {
            let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
            // The options are a name, the resolution, and the end.
            [&half(2)[..], &half(3), b"eth\0", &half(9), &half(1), &[value, 0, 0, 0], &half(0), &half(0)]
                .concat()
        });
        let link = if big { [0, 1] } else { [1, 0] };
        let interface = a_block(1, &[&link[..], &[0, 0], &word(0, big), &option].concat(), big);
        [section(big), interface, enhanced(0, &[5; 4], big)].concat()
    };
    for big in [false, true] {
        for (resolution, expected) in [
            (None, units * 1_000_000),
            (Some(6), units * 1_000_000),
            (Some(9), units * 1_000),
            (Some(0), units * 1_000_000_000_000),
            (Some(128 + 20), units * 1_000_000_000_000 / (1 << 20)),
        ] {
            assert_eq!(times(&with(resolution, big)), [(Some(expected), 1500)], "{resolution:?}");
        }
        let (packets, damage) = all(&with(Some(77), big)).unwrap();
        assert!(packets.is_empty() && damage.unwrap().what.contains("unsupported time resolution 77"));
    }
    // A simple packet has no time.
    let simple =
        [section(true), interface(1, 0, true), a_block(3, &[&word(4, true)[..], &[9; 4]].concat(), true)];
    assert_eq!(times(&simple.concat()), [(None, 4)]);
}

/// Returns an option of pcapng.
fn an_option(code: u16, value: &[u8], big: bool) -> Vec<u8> {
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let padding = vec![0; value.len().next_multiple_of(4) - value.len()];
    [&half(code)[..], &half(value.len() as u16), value, &padding].concat()
}

/// Returns an Ethernet interface with options.
fn interface_with(options: &[Vec<u8>], big: bool) -> Vec<u8> {
    let link = if big { [0, 1] } else { [1, 0] };
    a_block(1, &[&link[..], &[0; 6], &options.concat()].concat(), big)
}

/// Returns a block of this kind with a packet that has `length` bytes on the link.
fn packet_with(kind: u32, packet: &[u8], length: u32, options: &[Vec<u8>], big: bool) -> Vec<u8> {
    let padding = vec![0; packet.len().next_multiple_of(4) - packet.len()];
    let words = [0, 0, 2_000_000, packet.len() as u32, length].map(|value| word(value, big)).concat();
    a_block(kind, &[&words[..], packet, &padding, &options.concat()].concat(), big)
}

/// Returns the bytes and the length on the link of each packet, or a description of the damage.
fn packets(bytes: &[u8]) -> Result<Vec<(Vec<u8>, u64)>, String> {
    let mut capture = Capture::new(bytes).map_err(|damage| damage.what)?;
    let mut found = Vec::new();
    while let Some(packet) = capture.next_packet() {
        let packet = packet.map_err(|damage| damage.what)?;
        assert!(packet.bytes.len() as u64 <= packet.length);
        found.push((packet.bytes.to_vec(), packet.length));
    }
    Ok(found)
}

const FLAGS: u16 = 2;
const FCSLEN: u16 = 13;
const TSOFFSET: u16 = 14;

fn flags(value: u32, big: bool) -> Vec<u8> {
    an_option(FLAGS, &word(value, big), big)
}

/// Returns the first `captured` bytes of a frame of 60 bytes and a check sequence of `bytes` bytes.
fn with_fcs(bytes: usize, captured: usize) -> Vec<u8> {
    [&[0xab; 60][..], &[0xfc; 8][..bytes]].concat()[..captured].to_vec()
}

#[test]
fn frame_check_sequences_of_pcap_are_taken_off() {
    for big in [false, true] {
        // The upper four bits are the length of the check sequence in units of two bytes. They are valid only if bit 26
        // is set.
        for (kind, fcs) in [(0x2400_0001, 4), (0x1400_0001, 2), (0x0400_0001, 0), (0x2000_0001, 0), (1, 0)] {
            for captured in [60 + fcs, 61.min(60 + fcs), 60, 59] {
                let mut file = pcap(big, 0xa1b2_c3d4, kind, &[with_fcs(fcs, captured)]);
                file[36..40].copy_from_slice(&word(60 + fcs as u32, big));
                // A packet counts as whole even if bytes of its check sequence were not captured.
                let expected = (vec![0xab; captured.min(60)], 60);
                assert_eq!(packets(&file), Ok(vec![expected]), "{kind:x} {captured}");
            }
        }
    }
}

#[test]
fn frame_check_sequences_of_pcapng_are_taken_off() {
    for big in [false, true] {
        // The option is in bits according to the draft. But the draft's example, 4, means bytes.
        for (said, fcs) in [(Some(32), 4), (Some(4), 4), (Some(16), 2), (Some(2), 2), (Some(0), 0), (None, 0)]
        {
            let options: Vec<_> = said.iter().map(|said| an_option(FCSLEN, &[*said], big)).collect();
            for kind in [2, 6] {
                for captured in [60 + fcs, 60, 40] {
                    let frame = with_fcs(fcs, captured);
                    let packet = packet_with(kind, &frame, 60 + fcs as u32, &[], big);
                    let file = [section(big), interface_with(&options, big), packet].concat();
                    let expected = (vec![0xab; captured.min(60)], 60);
                    assert_eq!(packets(&file), Ok(vec![expected]), "{said:?} {captured}");
                }
            }
            let simple =
                a_block(3, &[&word(60 + fcs as u32, big)[..], &with_fcs(fcs, 60 + fcs)].concat(), big);
            let file = [section(big), interface_with(&options, big), simple].concat();
            assert_eq!(packets(&file), Ok(vec![(vec![0xab; 60], 60)]), "{said:?}");
        }
        // The flags of a packet state the length of its check sequence. The value 0 states no length.
        for (said, of_packet, fcs) in [(32, 2, 2), (0, 4, 4), (32, 0, 4), (0, 0, 0)] {
            for kind in [2, 6] {
                let options = [an_option(1, b"a comment", big), flags(of_packet << 5 | 1, big)];
                let packet = packet_with(kind, &with_fcs(fcs, 60 + fcs), 60 + fcs as u32, &options, big);
                let file = [section(big), interface_with(&[an_option(FCSLEN, &[said], big)], big), packet];
                assert_eq!(packets(&file.concat()), Ok(vec![(vec![0xab; 60], 60)]), "{said} {of_packet}");
            }
        }
    }
}

#[test]
fn bytes_behind_the_original_length_are_no_part_of_a_packet() {
    for big in [false, true] {
        for length in [0u32, 59, 60, 61] {
            let mut file = pcap(big, 0xa1b2_c3d4, 1, &[vec![7; 76]]);
            file[36..40].copy_from_slice(&word(length, big));
            let expected = Ok(vec![(vec![7; length as usize], length.into())]);
            assert_eq!(packets(&file), expected);
            for kind in [2, 6] {
                let packet = packet_with(kind, &[7; 76], length, &[], big);
                let file = [section(big), interface(1, 0, big), packet].concat();
                assert_eq!(packets(&file), expected);
            }
        }
    }
}

#[test]
fn an_interface_adds_its_offset_to_times() {
    for big in [false, true] {
        for offset in [0i64, 1_700_000_000, -2, -1_000_000, i64::MIN, i64::MAX] {
            let value = if big { offset.to_be_bytes() } else { offset.to_le_bytes() };
            let file = [
                section(big),
                interface_with(&[an_option(TSOFFSET, &value, big)], big),
                packet_with(6, &[5; 4], 4, &[], big),
            ];
            // The packet's time is 2 s in ticks of a microsecond.
            let expected = (2 + i128::from(offset)) * 1_000_000_000_000;
            assert_eq!(times(&file.concat()), [(Some(expected), 4)], "{offset}");
        }
    }
}

#[test]
fn errors_of_packets_are_those_of_their_flags() {
    for big in [false, true] {
        let fault = |value: u32, kind: u32| {
            let packet = packet_with(kind, &[5; 60], 60, &[flags(value, big)], big);
            let file = [section(big), interface(1, 0, big), packet].concat();
            Capture::new(&file[..]).unwrap().next_packet().unwrap().unwrap().fault
        };
        for kind in [2, 6] {
            // The flags of direction, reception type and offloading report no link error.
            assert_eq!(fault(0x0000_0e0f, kind), None);
            assert_eq!(fault(1 << 24, kind), Some("CRC error"));
            assert_eq!(fault(1 << 31 | 1, kind), Some("symbol error"));
            assert_eq!(fault(1 << 16, kind), Some("an error of the link"));
        }
    }
}

#[test]
fn unreadable_files_are_named() {
    let version = |major: u16, minor: u16, big: bool| {
        let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let body = [&word(0x1a2b_3c4d, big)[..], &half(major), &half(minor), &[0xff; 8]].concat();
        packets(&[a_block(0x0a0d_0d0a, &body, big), interface(1, 0, big)].concat())
    };
    for big in [false, true] {
        assert_eq!(version(1, 0, big), Ok(vec![]));
        assert_eq!(version(1, 2, big), Ok(vec![]));
        for (major, minor) in [(1, 1), (2, 0), (0, 0)] {
            let said = format!("a section of version {major}.{minor}; only 1.0 and 1.2 can be read");
            assert_eq!(version(major, minor, big), Err(said));
        }
        let mut old = pcap(big, 0xa1b2_c3d4, 1, &some());
        old[4..8].copy_from_slice(&if big { [0, 2, 0, 3] } else { [2, 0, 3, 0] });
        assert!(
            packets(&old).unwrap_err().starts_with("it has version 2.3 of pcap, but only 2.4 can be read")
        );
        for kind in [0x0800_0001, 0x0001_0001, 0x0200_0001] {
            let said = format!("reserved bits of its link type are set (0x{kind:08x})");
            assert_eq!(packets(&pcap(big, 0xa1b2_c3d4, kind, &some())), Err(said));
        }
        let of_interface = |option| packets(&[section(big), interface_with(&[option], big)].concat());
        for (option, said) in [
            (an_option(9, &[], big), "if_tsresol of an interface has 0 bytes, not 1"),
            (an_option(13, &[4, 0], big), "if_fcslen of an interface has 2 bytes, not 1"),
            (an_option(13, &[33], big), "an interface with frame check sequences of 33 bits (if_fcslen)"),
            (an_option(14, &[0; 4], big), "if_tsoffset of an interface has 4 bytes, not 8"),
        ] {
            assert_eq!(of_interface(option), Err(said.to_owned()));
        }
        let packet = packet_with(6, &[5; 4], 4, &[an_option(2, &[0; 8], big)], big);
        let said = packets(&[section(big), interface(1, 0, big), packet].concat());
        assert_eq!(said, Err("the flags of a packet has 8 bytes, not 4".to_owned()));
    }
}

proptest! {
    /// An option has an effect at any position in its list. Options that do not concern packets have no effect.
    #[test]
    fn options_count_wherever_they_are(
        others in prop::collection::vec((15u16..3000, prop::collection::vec(any::<u8>(), 0..20)), 0..5),
        (fcs, offset, at) in (0u8..5, any::<i64>(), any::<[prop::sample::Index; 2]>()),
        (end, big) in any::<(bool, bool)>(),
    ) {
        let mut options: Vec<_> = others.iter().map(|(code, value)| an_option(*code, value, big)).collect();
        let value = if big { offset.to_be_bytes() } else { offset.to_le_bytes() };
        for (option, at) in [an_option(FCSLEN, &[8 * fcs], big), an_option(TSOFFSET, &value, big)].into_iter().zip(at) {
            options.insert(at.index(options.len() + 1), option);
        }
        if end {
            options.push(an_option(0, &[], big));
        }
        let fcs = usize::from(fcs);
        let packet = packet_with(6, &with_fcs(fcs, 60 + fcs), 60 + fcs as u32, &[], big);
        let file = [section(big), interface_with(&options, big), packet].concat();
        prop_assert_eq!(packets(&file), Ok(vec![(vec![0xab; 60], 60)]));
        prop_assert_eq!(times(&file)[0].0, Some((2 + i128::from(offset)) * 1_000_000_000_000));
    }

    #[test]
    fn arbitrary_options_never_panic(
        of_interface in prop::collection::vec(any::<u8>(), 0..60),
        of_packet in prop::collection::vec(any::<u8>(), 0..60),
        (kind, length) in (prop::sample::select(vec![2u32, 3, 6]), 0u32..100),
        big: bool,
    ) {
        let packet = packet_with(kind, &[5; 13], length, &[of_packet], big);
        let _ = packets(&[section(big), interface_with(&[of_interface], big), packet].concat());
    }
}
