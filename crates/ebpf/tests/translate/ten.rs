//! nicety's ten XDP programs, with maps and packets for their usual ways.

use super::build::{compiler, object, options};
use super::card::{Card, NOW};
use nicety_ebpf::{Limits, Machine, Object, Packet};

/// An entry of a map by its name: key and value.
type Entry = (&'static str, Vec<u8>, Vec<u8>);

/// A program, the entries of its maps, and packets.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) entries: Vec<Entry>,
    pub(crate) packets: Vec<Vec<u8>>,
}

/// Instructions of a program on its packets.
pub(crate) struct Counts {
    pub(crate) name: &'static str,
    pub(crate) ebpf: u64,
    pub(crate) riscv: u64,
    /// Calls of helpers, with bodies that do not count.
    pub(crate) calls: u64,
}

const SOURCE: [u8; 4] = [10, 0, 0, 1];
const TO: [u8; 4] = [10, 0, 0, 9];
const UDP: u8 = 17;
const TCP: u8 = 6;

/// An IPv4 packet in Ethernet.
fn frame(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = 20 + payload.len() as u16;
    let mut header = vec![0x45, 0, (length >> 8) as u8, length as u8, 0, 1, 0, 0, 64, protocol, 0, 0];
    header.extend(SOURCE);
    header.extend(TO);
    let words = header.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend(header);
    frame.extend(payload);
    frame
}

fn udp(from: u16, to: u16, data: usize) -> Vec<u8> {
    let words = [from, to, 8 + data as u16, 0];
    let mut payload: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    payload.extend(vec![0; data]);
    frame(UDP, &payload)
}

fn tcp(from: u16, to: u16, sequence: u32, acknowledged: u32, flags: u8, options: &[u8]) -> Vec<u8> {
    let mut payload = [from.to_be_bytes(), to.to_be_bytes()].concat();
    payload.extend(sequence.to_be_bytes());
    payload.extend(acknowledged.to_be_bytes());
    payload.extend([((5 + options.len() / 4) << 4) as u8, flags, 4, 0, 0, 0, 0, 0]);
    payload.extend(options);
    frame(TCP, &payload)
}

fn word(number: u32) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

/// The programs with packets of their usual ways: those that they are written for, and one of another kind.
pub(crate) fn cases() -> Vec<Case> {
    let station = [2, 0, 0, 0, 0, 1];
    let flow = |from: u16, to: u16, protocol: u8| {
        let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
        [&SOURCE[..], &TO, &ports, &[protocol, 0, 0, 0]].concat()
    };
    let hop = [&station[..], &[2, 0, 0, 0, 0, 2], &word(3)].concat();
    let ends = [&[198, 51, 100, 1, 198, 51, 100, 2][..], &station, &[0, 0]].concat();
    let server = [&[192, 0, 2, 1][..], &station, &[0, 0]].concat();
    let service = [&TO[..], &80u16.to_be_bytes(), &[TCP, 0]].concat();
    let mut balancer: Vec<Entry> = vec![("services", service, word(0))];
    balancer.extend((0..251).map(|place| ("places", word(place), word(place % 3))));
    balancer.extend((0..3).map(|number| ("servers", word(number), server.clone())));
    let other = || {
        let mut packet = udp(1, 2, 20);
        packet[12..14].copy_from_slice(&[0x86, 0xdd]);
        packet
    };
    let case = |name, entries, packets| Case { name, entries, packets };
    vec![
        case("balancer", balancer, vec![tcp(1000, 80, 1, 1, 16, &[]), tcp(1000, 80, 2, 1, 16, &[]), other()]),
        case("bucket", vec![], vec![udp(1, 2, 66), udp(1, 2, 66), other()]),
        case("counters", vec![], vec![udp(1, 2, 20), udp(1, 2, 20), other()]),
        case(
            "firewall",
            vec![("flows", flow(4000, 53, UDP), word(2))],
            vec![udp(4000, 53, 20), udp(4001, 53, 20), other()],
        ),
        case("queues", vec![], vec![udp(1, 2, 20)]),
        case("redirect", vec![("ports", word(1), word(9))], vec![udp(1, 2, 20)]),
        case(
            "router",
            vec![("routes", [&word(8)[..], &[10, 0, 0, 0]].concat(), hop)],
            vec![udp(1, 2, 20), udp(3, 4, 500), other()],
        ),
        case(
            "syncookie",
            vec![("protected_ports", 80u16.to_be_bytes().to_vec(), word(1))],
            vec![
                tcp(4000, 80, 5000, 0, 2, &[2, 4, 5, 180]),
                tcp(4000, 80, 5001, 77, 16, &[]),
                tcp(9, 81, 1, 0, 2, &[]),
            ],
        ),
        case("too_long", vec![], vec![udp(1, 2, 20), udp(1, 2, 1000), other()]),
        case("tunnel", vec![("tunnels", TO.to_vec(), ends)], vec![udp(1, 2, 20), udp(1, 2, 1000), other()]),
    ]
}

impl Case {
    /// The object with a machine and its maps.
    pub(crate) fn filled(&self, object: &Object) -> Machine {
        let mut machine = Machine::new(object, Limits::default()).unwrap();
        for (name, key, value) in &self.entries {
            let map = machine.map_named(name).unwrap();
            machine.maps[map].set(key, std::slice::from_ref(value), 0).unwrap();
        }
        machine.now_ns = NOW;
        machine
    }

    /// Runs the packets on a card and in the interpreter, and compares results; none without a compiler.
    pub(crate) fn counts(&self, isa: &str, misaligned: bool) -> Option<Counts> {
        let object = object(&compiler()?, self.name);
        let mut machine = self.filled(&object);
        let number = machine.add(&object, object.program(None).unwrap()).unwrap();
        let name = object.programs[0].name.clone();
        let mut card = Card::new(&object, &name, &mut machine, isa, &options(isa, misaligned))?;
        let mut counts = Counts { name: self.name, ebpf: 0, riscv: 0, calls: 0 };
        for packet in &self.packets {
            let mut own = Packet::new(packet, 0).unwrap();
            let outcome = machine.run(number, &mut own).unwrap();
            let ran = card.run(packet).unwrap();
            assert_eq!((ran.value, &ran.packet), (outcome.value, &own.bytes()), "{} on {isa}", self.name);
            counts.ebpf += outcome.instructions;
            counts.riscv += ran.instructions;
            counts.calls += ran.calls;
        }
        Some(counts)
    }
}

/// The mean of the programs' RISC-V instructions for one of eBPF.
pub(crate) fn mean(counts: &[Counts]) -> f64 {
    counts.iter().map(|counts| counts.riscv as f64 / counts.ebpf as f64).sum::<f64>() / counts.len() as f64
}
