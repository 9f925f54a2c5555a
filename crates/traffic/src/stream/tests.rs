//! Tests streams of frames from captures and templates.

use super::*;
use proptest::prelude::*;

/// Returns a capture. Each packet is a time in nanoseconds, its captured bytes, and the number of further bytes on the
/// link that were not captured.
fn pcap(link: u32, packets: &[(u64, Vec<u8>, u32)]) -> Vec<u8> {
    let mut bytes: Vec<u8> = [0xa1b2_3c4du32, 0x0002_0004, 0, 0, 65_535, link]
        .iter()
        .flat_map(|word| word.to_be_bytes())
        .collect();
    for (time, packet, more) in packets {
        let captured = packet.len() as u32;
        let head = [(time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32, captured, captured + more];
        bytes.extend(head.iter().flat_map(|word| word.to_be_bytes()));
        bytes.extend(packet);
    }
    bytes
}

struct File(PathBuf);

impl File {
    fn new(name: &str, bytes: &[u8]) -> File {
        let path = std::env::temp_dir().join(format!("nicety-traffic-{}-{name}.pcap", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        File(path)
    }

    fn traffic(&self, rest: &str) -> Traffic {
        Traffic::parse(&format!("capture={} {rest}", self.0.display())).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

type Got = Vec<(DueTime, Vec<u8>)>;

fn all(traffic: &Traffic) -> Result<Got, String> {
    let mut stream = traffic.open(1, 1514).map_err(|error| error.to_string())?;
    let (mut frame, mut got) = (Vec::new(), Vec::new());
    while let Some(due) = stream.next_frame(&mut frame).map_err(|error| error.to_string())? {
        got.push((due, frame.clone()));
    }
    Ok(got)
}

fn three() -> Vec<(u64, Vec<u8>, u32)> {
    vec![(5_000_000_100, vec![1; 60], 0), (5_000_000_400, vec![2; 70], 0), (5_000_000_300, vec![3; 80], 0)]
}

#[test]
fn packets_come_when_they_were_recorded_and_again() {
    let file = File::new("recorded", &pcap(1, &three()));
    let due = |rest| all(&file.traffic(rest)).unwrap().into_iter().map(|(due, _)| due).collect::<Vec<_>>();
    let at = |(at, lasts)| DueTime::At { at, lasts };
    // A packet that was recorded before the previous packet is due at the same time as that packet. A mean gap follows
    // the last packet.
    assert_eq!(due(""), [(0, 0), (300_000, 600_000), (300_000, 450_000)].map(at));
    let looped = due("loop packets=6");
    assert_eq!(looped[3..], [(450_000, 600_000), (750_000, 937_500), (750_000, 900_000)].map(at));
    assert_eq!(due("rate=wire packets=2"), [DueTime::Wire; 2]);
    let us = |us: u64| 1_000_000 * us;
    assert_eq!(due("rate=1Mpps"), [0, 1, 2].map(|packet| at((us(packet), us(packet + 1)))));
    for (rest, packets) in [("packets=4", 4), ("rate=wire packets=9k", 9000)] {
        let error = all(&file.traffic(rest)).unwrap_err();
        let words = format!(
            "the capture has 3 packets, but packets={packets} requests more; write loop packets={packets}, "
        );
        assert!(error.contains(&words), "{error}");
    }
    let frames: Vec<Vec<u8>> = all(&file.traffic("")).unwrap().into_iter().map(|(_, frame)| frame).collect();
    assert_eq!(frames, [vec![1; 60], vec![2; 70], vec![3; 80]]);
}

#[test]
fn times_that_go_back_are_refused_beyond_disorder() {
    let at = |ns: u64| (5_000_000_000 + ns, vec![1; 60], 0);
    let back =
        |ns: u64| File::new(&format!("back{ns}"), &pcap(1, &[at(0), at(2_000_000), at(2_000_000 - ns)]));
    let last = DueTime::At { at: 2_000_000_000, lasts: 3_000_000_000 };
    assert_eq!(all(&back(1_000_000).traffic("")).unwrap()[2].0, last);
    let file = back(1_000_001);
    for rest in ["", "loop packets=9"] {
        let error = all(&file.traffic(rest)).unwrap_err();
        assert!(error.contains("packet 3 was recorded 0.001000001 s before a preceding packet"), "{error}");
    }
    assert_eq!(all(&file.traffic("rate=wire")).unwrap().len(), 3);
    // The same error occurs if a packet was recorded before the first packet.
    let file = File::new("backfirst", &pcap(1, &[at(2_000_000), at(0)]));
    assert!(all(&file.traffic("")).unwrap_err().contains("packet 2 was recorded 0.002 s before"));
}

#[test]
fn times_beyond_the_end_of_simulated_time_are_refused() {
    // A pcap file with nanoseconds can have times of up to 2^32 s.
    let end_s = (u64::MAX - MARGIN) / 1_000_000_000_000;
    let at = |s: u64| (s * 1_000_000_000, vec![1; 60], 0);
    let of = |name: &str, times: &[u64]| {
        File::new(name, &pcap(1, &times.iter().map(|s| at(*s)).collect::<Vec<_>>()))
    };
    let file = of("end", &[5, 5 + end_s]);
    let [_, (DueTime::At { at, lasts }, _)] = &all(&file.traffic("")).unwrap()[..] else {
        panic!("two frames")
    };
    assert_eq!((*at, *lasts), (end_s * 1_000_000_000_000, u64::MAX - MARGIN));
    for (name, times, rest, words) in [
        ("beyond", [5, 6 + end_s], "", "packet 2 is due 18410716 s after the first one, but simulated time"),
        ("far", [0, 4_294_967_295], "", "packet 2 is due 4294967295 s after the first one"),
        ("again", [5, 5 + end_s / 2], "loop packets=4", "packet 2 is due 27616071 s after"),
        ("start", [5, 5 + end_s], "start=2000000ms", "packet 2 is due 18410715 s after"),
    ] {
        let error = all(&of(name, &times).traffic(rest)).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    // The same error occurs for frames of a template. Each frame takes 12 000 s.
    let slow = Traffic::parse("udp size=1500 rate=1bps packets=2k").unwrap();
    assert!(all(&slow).unwrap_err().contains("frame 1536 is due more than 2^64 ps"));
    assert_eq!(all(&of("wire", &[0, 4_294_967_295]).traffic("rate=wire")).unwrap().len(), 2);
}

#[test]
fn packets_that_cannot_be_sent_are_named() {
    let cut = File::new("cut", &pcap(1, &[(0, vec![1; 60], 0), (1, vec![2; 60], 40)]));
    let error = all(&cut.traffic("")).unwrap_err();
    assert!(error.contains("packet 2 was captured up to byte 60 of 100; write cut=pad"), "{error}");
    assert_eq!(all(&cut.traffic("cut=pad")).unwrap()[1].1, [[2; 60].to_vec(), vec![0; 40]].concat());
    for (name, link, packet, words) in [
        ("long", 1, vec![0; 1515], "packet 1 has 1515 bytes, but a packet of the card carries at most 1514"),
        ("other", 113, vec![0; 60], "packet 1 has link type 113"),
        ("short", 1, vec![0; 13], "packet 1 has 13 bytes"),
    ] {
        let file = File::new(name, &pcap(link, &[(0, packet, 0)]));
        let error = all(&file.traffic("")).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    let whole = pcap(1, &three());
    let short = File::new("damaged", &whole[..whole.len() - 9]);
    let error = all(&short.traffic("")).unwrap_err();
    assert!(error.contains("at packet 3, byte ") && error.contains("9 bytes before the end"), "{error}");
    let empty = File::new("empty", &pcap(1, &[]));
    assert!(all(&empty.traffic("loop packets=2")).unwrap_err().contains("the capture has no packets"));
    assert!(
        all(&Traffic::parse("capture=/nowhere.pcap").unwrap()).unwrap_err().starts_with("/nowhere.pcap: ")
    );
    for (text, form, words) in [
        (
            "udp size=2000",
            Form::Frame,
            "column 10: frames of 2000 bytes, but a packet of the card carries at most 1514; write a size \
             up to 1514",
        ),
        (
            "udp size=41-60",
            Form::Frame,
            "column 10: frames of 41 bytes, but their headers alone have 42; write a size of 42 or more",
        ),
        (
            "udp size=2000",
            Form::Packet,
            "column 10: packets of IP of 2000 bytes, but a packet of the card carries at most 1514",
        ),
    ] {
        let error = all(&Traffic::parse(text).unwrap().formed(form)).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn packets_of_captured_frames_are_without_what_is_in_front_of_them() {
    let tagged = [&[1; 12][..], &[0x81, 0, 0, 5, 0x08, 0x06], &[3; 10]].concat();
    let of = |name: &str, frames: &[Vec<u8>], largest| {
        let written: Vec<_> = frames.iter().map(|frame| (0, frame.clone(), 0)).collect();
        let file = File::new(name, &pcap(1, &written));
        let traffic = file.traffic("rate=8Gbps").formed(Form::Packet);
        let mut stream = traffic.open(1, largest).unwrap();
        let (mut packet, mut got) = (Vec::new(), Vec::new());
        while let Some(due) = stream.next_frame(&mut packet).map_err(|error| error.to_string())? {
            got.push((due, packet.clone()));
        }
        Ok::<_, String>(got)
    };
    let frames = [vec![2; 34], tagged.clone()];
    // The rate is a byte of packets per nanosecond.
    let ns = |at: u64, lasts: u64| DueTime::At { at: 1_000 * at, lasts: 1_000 * lasts };
    let due = [(ns(0, 20), vec![2; 20]), (ns(20, 30), vec![3; 10])];
    assert_eq!(of("front", &frames, 20).unwrap(), due);
    let error = of("front-long", &frames, 19).unwrap_err();
    assert!(error.contains("packet 1 has 34 bytes, 14 of them before its packet, but"), "{error}");
    assert_eq!(of("front-tag", std::slice::from_ref(&tagged), 10).unwrap().len(), 1);
    let error = of("front-alone", &[vec![2; 14]], 20).unwrap_err();
    assert!(error.contains("packet 1 has only its header of Ethernet"), "{error}");
    let long = Traffic::parse("udp size=65549 packets=1").unwrap().formed(Form::Packet);
    assert!(long.open(1, 1 << 17).err().unwrap().to_string().contains("at most 65535"));
}

#[test]
fn the_seed_decides() {
    let traffic =
        Traffic::parse("udp src=10.0.0.0/8 zipf=1.1 imix rate=1Gbps arrivals=poisson packets=200").unwrap();
    let of = |seed| {
        let mut stream = traffic.open(seed, 1514).unwrap();
        let mut frame = Vec::new();
        (0..200).map(|_| (stream.next_frame(&mut frame).unwrap(), frame.clone())).collect::<Vec<_>>()
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

proptest! {
    #[test]
    fn what_was_captured_is_sent(
        // All recorded times are within a millisecond.
        packets in prop::collection::vec((1u64 << 39..(1 << 39) + 1_000_000, prop::collection::vec(any::<u8>(), 14..100)), 1..20),
        rounds in 1u64..4,
    ) {
        let written: Vec<_> = packets.iter().map(|(time, bytes)| (*time, bytes.clone(), 0)).collect();
        let file = File::new(&format!("any{rounds}-{}", packets.len()), &pcap(1, &written));
        let count = packets.len() as u64 * rounds;
        let got = all(&file.traffic(&format!("loop packets={count}"))).unwrap();
        prop_assert_eq!(got.len() as u64, count);
        let mut latest = 0;
        for ((due, frame), (_, bytes)) in got.iter().zip(packets.iter().cycle()) {
            prop_assert_eq!(frame, bytes);
            let DueTime::At { at, lasts } = *due else { panic!("recorded times") };
            prop_assert!(latest <= at && at <= lasts);
            latest = at;
        }
    }
}
