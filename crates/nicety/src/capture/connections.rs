//! TCP connections in a file with several runs: each run has its own ports.
//!
//! Two runs with one seed have the same connections with the same sequence numbers. Wireshark identifies a connection by its
//! addresses and ports on any interface, so it would show the second run as retransmissions. Therefore a connection of an earlier
//! run gets a new port in the frames of the file. The new port replaces the higher one of the connection's two ports.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The first port to assign is the first ephemeral port (RFC 6335). `PORTS` is the number of ports from there on.
const FIRST: u16 = 49152;
const PORTS: usize = 1 << 14;
/// Maximum number of connections of a file that get unique ports. The ports of further connections stay unchanged.
const MOST: usize = 1 << 20;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TAGS: [u16; 2] = [0x8100, 0x88a8];
const TCP: u8 = 6;

/// An end of a connection: its address and its port. An IPv4 address is in the first four bytes.
type End = ([u8; 16], u16);
/// Both ends of a connection, in ascending order.
type Connection = [End; 2];

/// The connections of a file.
#[derive(Debug, Default)]
pub(super) struct Connections {
    /// The connections of earlier runs, with their ports in the file.
    earlier: HashSet<Connection>,
    /// The number of ports assigned so far.
    given: usize,
}

/// The connections of a run.
#[derive(Debug, Default)]
pub(super) struct OfRun {
    /// Each connection as the links carry it. If one end has another port in the file, the value is that end and its port in the
    /// file.
    known: HashMap<Connection, Option<(End, u16)>>,
    /// The connections of this run, with their ports in the file.
    shown: HashSet<Connection>,
    /// The first and the last assigned port, if any. `moved` is the number of connections with an assigned port.
    ports: Option<(u16, u16)>,
    moved: usize,
}

impl Connections {
    /// Replaces the port of a TCP frame, if its connection has another port in the file. Other frames stay unchanged.
    pub(super) fn place(&mut self, run: &mut OfRun, frame: &mut [u8]) {
        let Some(found) = Found::of(frame) else { return };
        let ends = found.ends(frame);
        let connection = if ends[0] <= ends[1] { ends } else { [ends[1], ends[0]] };
        let moved = match run.known.get(&connection) {
            Some(moved) => *moved,
            None => {
                if run.known.len() + self.earlier.len() >= MOST {
                    return;
                }
                let is_there = self.earlier.contains(&connection) || run.shown.contains(&connection);
                let moved = is_there.then(|| self.give(run, connection)).flatten();
                if moved.is_none() {
                    run.shown.insert(connection);
                }
                run.known.insert(connection, moved);
                moved
            }
        };
        if let Some((end, port)) = moved {
            found.set_port(frame, usize::from(ends[0] != end), port);
        }
    }

    /// Assigns the next port that makes the connection unique in the file. The end with the higher port gets it.
    fn give(&mut self, run: &mut OfRun, connection: Connection) -> Option<(End, u16)> {
        let high = usize::from(connection[1].1 > connection[0].1);
        let (end, other) = (connection[high], connection[1 - high]);
        for _ in 0..PORTS {
            let port = FIRST + (self.given % PORTS) as u16;
            self.given += 1;
            let mut moved = [(end.0, port), other];
            moved.sort_unstable();
            if !self.earlier.contains(&moved) && run.shown.insert(moved) {
                run.ports = Some((run.ports.map_or(port, |(first, _)| first), port));
                run.moved += 1;
                return Some((end, port));
            }
        }
        None
    }

    /// Ends a run: its connections become those of earlier runs.
    pub(super) fn end(&mut self, run: OfRun) {
        self.earlier.extend(run.shown);
    }
}

impl OfRun {
    /// Describes the assigned ports, if any.
    pub(super) fn described(&self) -> Option<String> {
        let (first, last) = self.ports?;
        Some(match self.moved {
            1 => format!("1 TCP connection has port {first} in this file"),
            moved => format!("{moved} TCP connections have ports {first} to {last} in this file"),
        })
    }
}

/// The positions of the parts of a TCP frame.
struct Found {
    /// The positions of both addresses, the sender's first.
    addresses: [Range<usize>; 2],
    /// The offset of the TCP header.
    tcp: usize,
}

impl Found {
    fn of(frame: &[u8]) -> Option<Found> {
        let half = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let (mut kind, mut at) = (half(12)?, 14);
        while TAGS.contains(&kind) {
            (kind, at) = (half(at + 2)?, at + 4);
        }
        let (protocol, addresses, size, tcp) = match kind {
            IPV4 => {
                // A later fragment has no TCP header.
                if half(at + 6)? & 0x1fff != 0 {
                    return None;
                }
                (*frame.get(at + 9)?, at + 12, 4, at + usize::from(frame.get(at)? & 0xf) * 4)
            }
            IPV6 => (*frame.get(at + 6)?, at + 8, 16, at + 40),
            _ => return None,
        };
        let whole = protocol == TCP && frame.len() >= tcp + 20;
        let addresses = [addresses..addresses + size, addresses + size..addresses + 2 * size];
        whole.then_some(Found { addresses, tcp })
    }

    fn ends(&self, frame: &[u8]) -> [End; 2] {
        [0, 1].map(|end| {
            let mut address = [0; 16];
            let bytes = &frame[self.addresses[end].clone()];
            address[..bytes.len()].copy_from_slice(bytes);
            let at = self.tcp + 2 * end;
            (address, u16::from_be_bytes([frame[at], frame[at + 1]]))
        })
    }

    /// Changes the port of an end, and updates the checksum (RFC 1624): a correct checksum stays correct.
    fn set_port(&self, frame: &mut [u8], end: usize, port: u16) {
        let mut replace = |at: usize, value: u16| {
            let before = u16::from_be_bytes([frame[at], frame[at + 1]]);
            frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
            before
        };
        let before = replace(self.tcp + 2 * end, port);
        let at = self.tcp + 16;
        let sum = replace(at, 0);
        let mut new = u32::from(!sum) + u32::from(!before) + u32::from(port);
        while new > 0xffff {
            new = (new & 0xffff) + (new >> 16);
        }
        replace(at, !(new as u16));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the sum of the 16-bit words of bytes (RFC 1071).
    fn sum(bytes: &[u8]) -> u64 {
        bytes.chunks(2).map(|two| u64::from(two[0]) << 8 | u64::from(*two.get(1).unwrap_or(&0))).sum()
    }

    fn folded(mut sum: u64) -> u16 {
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// Whether a segment's checksum is correct. The checksum covers the addresses of its packet.
    fn is_right(frame: &[u8], addresses: &[u8], tcp: usize) -> bool {
        let segment = &frame[tcp..];
        folded(sum(addresses) + u64::from(TCP) + segment.len() as u64 + sum(segment)) == 0xffff
    }

    fn frame(six: bool, tags: usize, (from, to): ((u8, u16), (u8, u16)), payload: &[u8]) -> (Vec<u8>, usize) {
        let mut frame = vec![2; 12];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 5]));
        let addresses: Vec<u8> = [from.0, to.0]
            .iter()
            .flat_map(|last| [&vec![0; if six { 15 } else { 3 }][..], &[*last]].concat())
            .collect();
        if six {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, TCP, 64]);
        } else {
            frame.extend([0x08, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, TCP, 0, 0]);
        }
        frame.extend(&addresses);
        let tcp = frame.len();
        frame.extend([from.1.to_be_bytes(), to.1.to_be_bytes()].concat());
        frame.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 9, 9, 0, 0, 0, 0]);
        frame.extend(payload);
        let right =
            !folded(sum(&addresses) + u64::from(TCP) + (frame.len() - tcp) as u64 + sum(&frame[tcp..]));
        frame[tcp + 16..tcp + 18].copy_from_slice(&right.to_be_bytes());
        (frame, tcp)
    }

    /// Returns the source and destination port of a frame in the file.
    fn ports(frame: &[u8], tcp: usize) -> (u16, u16) {
        let port = |at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
        (port(tcp), port(tcp + 2))
    }

    #[test]
    fn a_connection_of_an_earlier_run_has_another_port() {
        let (client, server, other) = ((1, 50_000), (2, 80), (1, 49_152));
        let mut file = Connections::default();
        let mut told = Vec::new();
        for run in 0..3 {
            let mut of_run = OfRun::default();
            let mut placed = |from, to| {
                let (mut frame, tcp) = frame(false, 0, (from, to), b"some");
                file.place(&mut of_run, &mut frame);
                assert!(is_right(&frame, &frame[26..34], tcp));
                ports(&frame, tcp)
            };
            let (first, back) = (placed(client, server), placed(server, client));
            assert_eq!((first.0, first.1), (back.1, back.0));
            told.push((first.0, placed(other, server).0));
            assert_eq!(first.1, 80);
            let words = of_run.described();
            assert_eq!(words.is_some(), run > 0);
            file.end(of_run);
        }
        // Port 49152 is not assigned, because a connection of the first run has it.
        assert_eq!(told, [(50_000, 49_152), (49_153, 49_154), (49_155, 49_156)]);
    }

    #[test]
    fn descriptions_of_ports() {
        let one = OfRun { ports: Some((7, 7)), moved: 1, ..OfRun::default() };
        assert_eq!(one.described().unwrap(), "1 TCP connection has port 7 in this file");
        let more = OfRun { ports: Some((7, 9)), moved: 3, ..OfRun::default() };
        assert_eq!(more.described().unwrap(), "3 TCP connections have ports 7 to 9 in this file");
    }

    #[test]
    fn connections_beyond_all_ports_stay_as_they_are() {
        let mut file = Connections::default();
        let run = |file: &mut Connections, count: u32| {
            let mut of_run = OfRun::default();
            for number in 0..count {
                let (mut frame, _) = frame(false, 0, ((1, 80), (2, FIRST + number as u16)), b"");
                file.place(&mut of_run, &mut frame);
            }
            let moved = of_run.moved;
            file.end(of_run);
            moved
        };
        assert_eq!(run(&mut file, 1 << 14), 0);
        assert_eq!(run(&mut file, 2), 0);
    }

    proptest! {
        /// For any runs, each frame stays with its connection, two runs never share a connection, and checksums stay correct.
        #[test]
        fn connections_of_runs_never_meet(
            runs in prop::collection::vec(prop::collection::vec((0u8..3, 0u8..3, 0u16..4, 0u16..4, any::<bool>()), 1..12), 1..5),
            (six, tags) in (any::<bool>(), 0usize..3),
            payload in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let mut file = Connections::default();
            let mut earlier = HashSet::new();
            for run in runs {
                let (mut of_run, mut here) = (OfRun::default(), HashMap::new());
                for (from, to, source, destination, high) in run {
                    let base = if high { FIRST } else { 1000 };
                    let ends = ((from, base + source), (to, 80 + destination));
                    let (mut frame, tcp) = frame(six, tags, ends, &payload);
                    file.place(&mut of_run, &mut frame);
                    let (begin, size) = if six { (tcp - 32, 32) } else { (tcp - 8, 8) };
                    prop_assert!(is_right(&frame, &frame[begin..begin + size], tcp));
                    let (source, destination) = ports(&frame, tcp);
                    let mut shown = [(from, source), (to, destination)];
                    shown.sort_unstable();
                    let mut sent = [ends.0, ends.1];
                    sent.sort_unstable();
                    prop_assert!(!earlier.contains(&shown), "{:?}", shown);
                    prop_assert_eq!(*here.entry(shown).or_insert(sent), sent);
                }
                file.end(of_run);
                earlier.extend(here.into_keys());
            }
        }

        #[test]
        fn any_frame_is_placed(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..20)) {
            let mut file = Connections::default();
            for _ in 0..2 {
                let mut run = OfRun::default();
                for bytes in &frames {
                    let mut bytes = bytes.clone();
                    if bytes.len() > 24 {
                        bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
                        bytes[23] = TCP;
                    }
                    let before = bytes.len();
                    file.place(&mut run, &mut bytes);
                    prop_assert_eq!(bytes.len(), before);
                }
                file.end(run);
            }
        }
    }
}
