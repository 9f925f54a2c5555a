//! Traffic as a stream: one frame at a time, with its due time.

use crate::arrivals::Clock;
use crate::capture::{self, Capture, Packet, link_name};
use crate::error::TrafficError;
use crate::expression::{Addresses, Cut, Rate, Sizes, Source, Template, Traffic};
use crate::form::Form;
use crate::template::Maker;
use std::io::Read;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// The LINKTYPE of Ethernet.
const ETHERNET: u32 = 1;
/// Bytes of an Ethernet header.
const HEADER: usize = 14;
/// Maximum disorder of recorded times, in picoseconds. In captures of several queues or interfaces, packets are slightly out of
/// order.
const DISORDER: i128 = 1_000_000_000;
/// Picoseconds between the last due time and the end of simulated time, 2^64 ps. These ten hours leave room for a run's time
/// around its frames, and for sums of their times.
const MARGIN: u64 = u64::MAX >> 9;

/// The due time of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DueTime {
    /// As soon as the wire is free.
    Wire,
    /// A number of picoseconds after the first frame.
    At {
        /// The due time.
        at: u64,
        /// The duration of the frames up to this one. At a rate it is by the rate; at recorded times it includes a mean gap
        /// behind the last.
        lasts: u64,
    },
}

/// Consecutive frames.
pub struct Stream {
    frames: Frames,
    clock: Option<Clock>,
    left: Option<u64>,
    form: Form,
    /// Maximum bytes of a packet.
    largest: u64,
    /// The latest due time, in picoseconds after the first frame.
    latest: u64,
    /// Frames so far.
    frames_before: u64,
}

enum Frames {
    Made(Box<Maker>),
    Captured(Box<Captured>),
}

/// Frames of a capture.
struct Captured {
    path: PathBuf,
    looped: bool,
    cut: Cut,
    recorded: bool,
    capture: Capture<Box<dyn Read + Send>>,
    times: Times,
}

/// A reason why a packet cannot have its recorded time.
enum InvalidTime {
    /// This number of picoseconds before the latest packet.
    Earlier(i128),
    /// This number of picoseconds after the first packet: too late for a run.
    Beyond(i128),
}

/// Recorded times, relative to the first packet.
#[derive(Default)]
struct Times {
    /// The time of the capture's first packet.
    first: Option<i128>,
    /// The start of the capture's current pass, and the latest due time.
    begun: u64,
    latest: u64,
    /// Packets in the current pass, and in all passes.
    packets: u64,
    all: u64,
}

impl Times {
    /// Returns the due time of a packet with this recorded time, and the duration of the packets up to it. A due time is never
    /// before the preceding one.
    ///
    /// # Errors
    /// When it was recorded before the latest packet by more than the usual disorder, or is due after `latest`.
    fn due(&mut self, time: i128, latest: u64) -> Result<DueTime, InvalidTime> {
        let first = *self.first.get_or_insert(time);
        let before = first + i128::from(self.latest.saturating_sub(self.begun));
        if time + DISORDER < before {
            return Err(InvalidTime::Earlier(before - time));
        }
        let since = (time - first).max(0);
        let due = u64::try_from(since).ok().and_then(|since| self.begun.checked_add(since));
        let due =
            due.filter(|due| *due <= latest).ok_or(InvalidTime::Beyond(since + i128::from(self.begun)))?;
        self.latest = self.latest.max(due);
        self.packets += 1;
        self.all += 1;
        let gap = self.latest / (self.all.max(2) - 1);
        Ok(DueTime::At { at: self.latest, lasts: self.latest.saturating_add(gap).min(latest) })
    }

    /// Restarts the capture, a mean gap after its last packet.
    fn again(&mut self) {
        let gap = (self.latest - self.begun) / (self.packets.max(2) - 1);
        (self.begun, self.packets) = (self.latest.saturating_add(gap), 0);
    }
}

impl Traffic {
    /// The expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Gives made frames these source and destination addresses, by version of IP, where the expression gives none.
    #[must_use]
    pub fn addressed(mut self, src: (Ipv4Addr, Ipv6Addr), dst: (Ipv4Addr, Ipv6Addr)) -> Traffic {
        if let Source::Template(template) = &mut self.source {
            let ip6 = template.src.first.is_ipv6();
            let one = |(four, six): (Ipv4Addr, Ipv6Addr)| Addresses {
                first: if ip6 { six.into() } else { four.into() },
                bits: 0,
            };
            if !self.says.0 {
                template.src = one(src);
            }
            if !self.says.1 {
                template.dst = one(dst);
            }
        }
        self
    }

    /// Gives its packets this form. Sizes and rates then are those that handlers find.
    #[must_use]
    pub fn formed(mut self, form: Form) -> Traffic {
        if let (Source::Template(template), Form::Packet, true) = (&mut self.source, form, self.is_imix) {
            let headers = template.protocol.headers(template.is_ip6()) - form.in_front();
            template.sizes = Sizes::imix_packets().at_least(headers);
        }
        self.form = form;
        self
    }

    /// Opens the traffic for a card with packets of at most `largest` bytes. They are frames without their check sequence, unless
    /// [`Traffic::formed`] changes the form.
    ///
    /// # Errors
    /// When a capture is invalid or unreadable, or a size is above `largest`.
    pub fn open(&self, seed: u64, largest: u64) -> Result<Stream, TrafficError> {
        let largest = largest.min(self.form.most());
        let frames = match &self.source {
            Source::Template(template) => {
                let (least, most) = template.sizes.extent();
                let headers = template.protocol.headers(template.is_ip6()) - self.form.in_front();
                let what = match self.form {
                    Form::Frame => "frames",
                    Form::Packet => "packets of IP",
                };
                let wrong = |message: String| TrafficError {
                    place: self.size_at.clone().map(|at| (self.text.clone(), at)),
                    message,
                };
                if least < headers {
                    return Err(wrong(format!(
                        "{what} of {least} bytes, and their headers alone have {headers}; write a size from {headers} on"
                    )));
                }
                if most > largest {
                    return Err(wrong(format!(
                        "{what} of {most} bytes, and a packet of the card carries {largest} at most; write a size up to {largest}"
                    )));
                }
                // Packets are made as frames.
                let front = self.form.in_front();
                let sizes = template.sizes.clone().plus(front);
                Frames::Made(Box::new(Maker::new(Template { sizes, ..template.clone() }, most + front, seed)))
            }
            Source::Capture { path, looped, cut } => Frames::Captured(Box::new(Captured {
                path: path.clone(),
                looped: *looped,
                cut: *cut,
                recorded: self.rate == Rate::Recorded,
                capture: open(path)?,
                times: Times::default(),
            })),
        };
        let bytes = match &self.source {
            Source::Template(template) => Some(template.sizes.mean()),
            Source::Capture { .. } => None,
        };
        let clock = Clock::new(self.rate, self.arrivals, bytes, seed);
        let latest = (u64::MAX - MARGIN).saturating_sub(self.start_ps.unwrap_or(0));
        Ok(Stream { frames, clock, left: self.packets, form: self.form, largest, latest, frames_before: 0 })
    }
}

fn open(path: &Path) -> Result<Capture<Box<dyn Read + Send>>, TrafficError> {
    let place = path.display();
    let file = capture::open(path).map_err(|error| {
        let text = error.to_string();
        TrafficError::new(format!("{place}: {}", text.split(" (os error").next().unwrap_or(&text)))
    })?;
    Capture::new(file).map_err(|damage| TrafficError::new(format!("{place}: {}", damage.what)))
}

impl Stream {
    /// Puts the next frame into `frame`, and returns its due time; none at the end.
    ///
    /// # Errors
    /// When the capture is damaged or cut short. When a packet is not an Ethernet frame, too long, incomplete, or has an
    /// impossible time. When a frame is due after the end of simulated time. The text names the packet.
    pub fn next_frame(&mut self, frame: &mut Vec<u8>) -> Result<Option<DueTime>, TrafficError> {
        if self.left == Some(0) {
            return Ok(None);
        }
        let recorded = match &mut self.frames {
            Frames::Made(maker) => {
                maker.make(frame);
                self.form.take(frame);
                None
            }
            Frames::Captured(captured) => {
                match (captured.next(frame, self.form, (self.largest, self.latest))?, self.left) {
                    (Some(due), _) => due,
                    (None, None) => return Ok(None),
                    (None, Some(left)) => return Err(captured.too_few(left)),
                }
            }
        };
        self.left = self.left.map(|left| left - 1);
        self.frames_before += 1;
        Ok(Some(match (&mut self.clock, recorded) {
            (Some(clock), _) => {
                let due = clock.due(frame.len() as u64).filter(|at| *at <= self.latest);
                let at = due.ok_or_else(|| {
                    TrafficError::new(format!(
                        "frame {} is due more than 2^64 ps (213 days) behind the first one, and simulated time ends there; write a \
                         higher rate, or fewer packets",
                        self.frames_before
                    ))
                })?;
                DueTime::At { at, lasts: clock.lasts().min(self.latest) }
            }
            (None, Some(due)) => due,
            (None, None) => DueTime::Wire,
        }))
    }
}

impl Captured {
    /// Returns the error of a capture that ends `left` packets early.
    fn too_few(&self, left: u64) -> TrafficError {
        let (place, packets) = (self.path.display(), self.capture.packets());
        let asked = packets + left;
        TrafficError::new(format!(
            "{place}: it has {packets} packets, and packets={asked} asks for more; write loop packets={asked}, which begins it again \
             at its end, or leave packets out"
        ))
    }

    /// Reads the next frame, and returns its due time if recorded times count.
    fn next(
        &mut self,
        frame: &mut Vec<u8>,
        form: Form,
        (largest, latest): (u64, u64),
    ) -> Result<Option<Option<DueTime>>, TrafficError> {
        loop {
            let place = self.path.display();
            let number = self.capture.packets() + 1;
            match self.capture.next_packet() {
                Some(Ok(packet)) => {
                    let wrong = |what: String| TrafficError::new(format!("{place}: packet {number} {what}"));
                    copy(&packet, self.cut, form, largest, frame).map_err(wrong)?;
                    if !self.recorded {
                        return Ok(Some(None));
                    }
                    let time = packet.time.ok_or_else(|| {
                        wrong("has no time; write rate=wire, rate=10Gbps or rate=5Mpps".into())
                    })?;
                    return match self.times.due(time, latest) {
                        Ok(due) => Ok(Some(Some(due))),
                        Err(InvalidTime::Earlier(earlier)) => Err(wrong(format!(
                            "was recorded {} s before a packet in front of it; sort the capture, as by reordercap of Wireshark, or \
                             write rate=wire, rate=10Gbps or rate=5Mpps",
                            earlier as f64 / 1e12
                        ))),
                        Err(InvalidTime::Beyond(since)) => Err(wrong(format!(
                            "is due {:.0} s behind the first one, and simulated time ends after 2^64 ps (213 days); cut the \
                             capture, as by editcap -A and -B of Wireshark, or write rate=wire, rate=10Gbps or rate=5Mpps",
                            since as f64 / 1e12
                        ))),
                    };
                }
                Some(Err(damage)) => return Err(TrafficError::new(format!("{place}: {damage}"))),
                None if number == 1 => {
                    return Err(TrafficError::new(format!("{place}: there is no packet in it")));
                }
                None if !self.looped => return Ok(None),
                None => {
                    self.capture = open(&self.path)?;
                    self.times.again();
                }
            }
        }
    }
}

/// Copies a packet's frame. The error completes a sentence about the packet.
fn copy(packet: &Packet<'_>, cut: Cut, form: Form, largest: u64, frame: &mut Vec<u8>) -> Result<(), String> {
    let Packet { link, bytes, length, fault, .. } = *packet;
    if link != ETHERNET {
        let name = link_name(link).map_or(String::new(), |name| format!(" ({name})"));
        return Err(format!(
            "has link type {link}{name}, and frames of Ethernet, link type 1, are sent; record it on an interface of Ethernet, as with tcpdump -i eth0 \
             and not -i any"
        ));
    }
    if let Some(fault) = fault {
        return Err(format!(
            "had an error on its link ({fault}, by its flags), and a card drops such a frame; write a capture without it"
        ));
    }
    let front = form.in_front_of(bytes) as u64;
    if length > largest + front {
        let in_front =
            if front > 0 { format!(", {front} of them in front of its packet") } else { String::new() };
        return Err(format!(
            "has {length} bytes{in_front}, and a packet of the card carries {largest} at most; give the card longer ones (frames.mtu, or \
             packet.payload), or a capture without it"
        ));
    }
    let captured = bytes.len() as u64;
    if captured < length && cut == Cut::Refuse {
        return Err(format!(
            "was captured up to byte {captured} of {length}; write cut=pad to fill it up with zeros"
        ));
    }
    if length < HEADER as u64 {
        return Err(format!(
            "has {length} bytes, and the header of Ethernet alone has {HEADER}; write a capture without it"
        ));
    }
    frame.clear();
    frame.extend_from_slice(bytes);
    frame.resize(length as usize, 0);
    form.take(frame);
    match frame.is_empty() {
        true => {
            Err("has no more than its header of Ethernet, and the card's packets begin behind that; write a capture without it".into())
        }
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a capture with packets of these times in nanoseconds, bytes and extra lengths. `length` is added to the length on
    /// the link.
    fn pcap(link: u32, packets: &[(u64, Vec<u8>, u32)]) -> Vec<u8> {
        let mut bytes: Vec<u8> = [0xa1b2_3c4du32, 0x0002_0004, 0, 0, 65_535, link]
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect();
        for (time, packet, more) in packets {
            let captured = packet.len() as u32;
            let head =
                [(time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32, captured, captured + more];
            bytes.extend(head.iter().flat_map(|word| word.to_be_bytes()));
            bytes.extend(packet);
        }
        bytes
    }

    struct File(PathBuf);

    impl File {
        fn new(name: &str, bytes: &[u8]) -> File {
            let path =
                std::env::temp_dir().join(format!("nicety-traffic-{}-{name}.pcap", std::process::id()));
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
        vec![
            (5_000_000_100, vec![1; 60], 0),
            (5_000_000_400, vec![2; 70], 0),
            (5_000_000_300, vec![3; 80], 0),
        ]
    }

    #[test]
    fn packets_come_when_they_were_recorded_and_again() {
        let file = File::new("recorded", &pcap(1, &three()));
        let due =
            |rest| all(&file.traffic(rest)).unwrap().into_iter().map(|(due, _)| due).collect::<Vec<_>>();
        let at = |(at, lasts)| DueTime::At { at, lasts };
        // A packet with a too early time is due with the one before it. The mean gap follows the last packet.
        assert_eq!(due(""), [(0, 0), (300_000, 600_000), (300_000, 450_000)].map(at));
        let looped = due("loop packets=6");
        assert_eq!(looped[3..], [(450_000, 600_000), (750_000, 937_500), (750_000, 900_000)].map(at));
        assert_eq!(due("rate=wire packets=2"), [DueTime::Wire; 2]);
        let us = |us: u64| 1_000_000 * us;
        assert_eq!(due("rate=1Mpps"), [0, 1, 2].map(|packet| at((us(packet), us(packet + 1)))));
        for (rest, packets) in [("packets=4", 4), ("rate=wire packets=9k", 9000)] {
            let error = all(&file.traffic(rest)).unwrap_err();
            let words = format!(
                "it has 3 packets, and packets={packets} asks for more; write loop packets={packets}, "
            );
            assert!(error.contains(&words), "{error}");
        }
        let frames: Vec<Vec<u8>> =
            all(&file.traffic("")).unwrap().into_iter().map(|(_, frame)| frame).collect();
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
            assert!(
                error.contains("packet 3 was recorded 0.001000001 s before a packet in front"),
                "{error}"
            );
        }
        assert_eq!(all(&file.traffic("rate=wire")).unwrap().len(), 3);
        // The same before the first packet.
        let file = File::new("backfirst", &pcap(1, &[at(2_000_000), at(0)]));
        assert!(all(&file.traffic("")).unwrap_err().contains("packet 2 was recorded 0.002 s before"));
    }

    #[test]
    fn times_beyond_the_end_of_simulated_time_are_refused() {
        // A file with nanoseconds holds up to 2^32 s.
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
            (
                "beyond",
                [5, 6 + end_s],
                "",
                "packet 2 is due 18410716 s behind the first one, and simulated time",
            ),
            ("far", [0, 4_294_967_295], "", "packet 2 is due 4294967295 s behind the first one"),
            ("again", [5, 5 + end_s / 2], "loop packets=4", "packet 2 is due 27616071 s behind"),
            ("start", [5, 5 + end_s], "start=2000000ms", "packet 2 is due 18410715 s behind"),
        ] {
            let error = all(&of(name, &times).traffic(rest)).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        // The same for made frames: 12 000 s each.
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
            (
                "long",
                1,
                vec![0; 1515],
                "packet 1 has 1515 bytes, and a packet of the card carries 1514 at most",
            ),
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
        assert!(all(&empty.traffic("loop packets=2")).unwrap_err().contains("no packet in it"));
        assert!(
            all(&Traffic::parse("capture=/nowhere.pcap").unwrap())
                .unwrap_err()
                .starts_with("/nowhere.pcap: ")
        );
        for (text, form, words) in [
            (
                "udp size=2000",
                Form::Frame,
                "column 10: frames of 2000 bytes, and a packet of the card carries 1514 at most; write a size up to 1514",
            ),
            (
                "udp size=41-60",
                Form::Frame,
                "column 10: frames of 41 bytes, and their headers alone have 42; write a size from 42 on",
            ),
            (
                "udp size=2000",
                Form::Packet,
                "column 10: packets of IP of 2000 bytes, and a packet of the card carries 1514 at most",
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
        // A byte per nanosecond, of packets.
        let ns = |at: u64, lasts: u64| DueTime::At { at: 1_000 * at, lasts: 1_000 * lasts };
        let due = [(ns(0, 20), vec![2; 20]), (ns(20, 30), vec![3; 10])];
        assert_eq!(of("front", &frames, 20).unwrap(), due);
        let error = of("front-long", &frames, 19).unwrap_err();
        assert!(error.contains("packet 1 has 34 bytes, 14 of them in front of its packet, and"), "{error}");
        assert_eq!(of("front-tag", std::slice::from_ref(&tagged), 10).unwrap().len(), 1);
        let error = of("front-alone", &[vec![2; 14]], 20).unwrap_err();
        assert!(error.contains("packet 1 has no more than its header of Ethernet"), "{error}");
        let long = Traffic::parse("udp size=65549 packets=1").unwrap().formed(Form::Packet);
        assert!(long.open(1, 1 << 17).err().unwrap().to_string().contains("65535 at most"));
    }

    #[test]
    fn the_seed_decides() {
        let traffic =
            Traffic::parse("udp src=10.0.0.0/8 zipf=1.1 imix rate=1Gbps arrivals=poisson packets=200")
                .unwrap();
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
        fn captured_frames_are_sent(
            // Less than a millisecond apart.
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
}
