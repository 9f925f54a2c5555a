//! nicety's programs, translated and with the runtime, against the interpreter: results, packets and maps.

use crate::toolchain::{Cores, compiled, linked};
use nicety_ebpf::report::maps::fill;
use nicety_ebpf::{Limits, Machine, MapKind, Object, Packet, Redirect};
use nicety_hpu::{AddressSpace, Context, Exit, Image, Region, Reservations};
use nicety_xdp::{Request, after, build, finish};
use std::collections::BTreeMap;
use std::sync::Arc;

const CPUS: u32 = 2;
/// As Linux's, less the record of a frame.
const HEADROOM: u32 = 216;
const LONGEST: u32 = 2000;
pub(crate) const QUEUES: u32 = 8;
/// Places in a handler's memory.
const PLACE: u32 = 0x1c40_0000;
const ARGUMENTS: u32 = 0x1b00_0000;
const STACK: u32 = 0x2000_0000;
const STACK_BYTES: usize = 4096;
/// Return codes of frame handlers.
const DROP: u32 = 0;
const HOST: u32 = 1;
const WIRE: u32 = 2;

pub(crate) fn request(program: &str, cores: Cores, maps: &[(&str, String)]) -> Request {
    Request {
        program: Some(program.to_owned()),
        isa: cores.isa().to_owned(),
        misaligned: true,
        cluster: None,
        cpus: CPUS,
        headroom: HEADROOM,
        longest: LONGEST,
        queues: QUEUES,
        cycle_ps: 1000,
        memory: 4 << 20,
        maps: maps.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect(),
    }
}

/// A card's core with a program.
pub(crate) struct Card {
    image: Arc<Image>,
    code: (u32, Vec<u8>),
    data: (u32, Vec<u8>),
    elf: Vec<u8>,
    cores: Cores,
    pub(crate) core: u32,
}

impl Card {
    pub(crate) fn new(name: &str, file: &[u8], cores: Cores, request: &Request) -> Card {
        let assembly = build(file, request).unwrap().assembly;
        let elf = finish(file, &linked(name, &assembly, cores), request).unwrap();
        let image = Image::load(&elf, &cores.core()).unwrap();
        let bytes = |writable| {
            let segment = image.segments().iter().find(|s| s.writable() == writable).unwrap();
            let mut bytes = vec![0; segment.size() as usize];
            segment.write_to(&mut bytes);
            (segment.address(), bytes)
        };
        let (code, data) = (bytes(false), bytes(true));
        Card { image, code, data, elf, cores, core: 0 }
    }

    /// Runs the frame handler, and returns its result and the frame.
    pub(crate) fn handle(&mut self, frame: &[u8], channel: u32) -> (u32, Vec<u8>) {
        let mut place = vec![0; (HEADROOM + LONGEST) as usize];
        let (mut start, mut end) = (HEADROOM, HEADROOM + frame.len() as u32);
        place[start as usize..end as usize].copy_from_slice(frame);
        let entry = self.image.symbol("frame_handler").unwrap();
        let mut stack = vec![0; STACK_BYTES];
        let (mut context, mut reservations) = (Context::new(self.core), Reservations::new());
        context.call(&self.image, entry, STACK + STACK_BYTES as u32, &[ARGUMENTS, 0], 1_000_000);
        loop {
            // A pointer, and three words.
            let upper: &[u32] = if self.cores == Cores::Rv64 { &[0] } else { &[] };
            let words = [&[PLACE + start], upper, &[end - start, 0, channel]].concat();
            let arguments: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut space = AddressSpace::new()
                .with(Region::read_only("arguments", ARGUMENTS, &arguments))
                .with(Region::memory("packet", PLACE + start, &mut place[start as usize..end as usize]))
                .with(Region::stack("stack", STACK, &mut stack, 0))
                .with(Region::read_only("code", self.code.0, &self.code.1))
                .with(Region::memory("data", self.data.0, &mut self.data.1));
            let exit = context.run(&self.image, &mut space, &mut reservations, u64::MAX);
            if let Exit::Return(value) = exit {
                drop(space);
                return (value, place[start as usize..end as usize].to_vec());
            }
            match exit {
                Exit::Return(_) => unreachable!("it was looked at"),
                Exit::Order(_) => context.perform(&self.image, &mut space, &mut reservations).unwrap(),
                Exit::Trap(trap) => panic!("{trap}"),
                Exit::Ecall => {
                    let [bytes, .., number] = context.args();
                    match number {
                        0x170 => start -= bytes,
                        0x171 => start += bytes,
                        0x172 => end = start + bytes,
                        _ => panic!("command {number:#x}"),
                    }
                    context.finish_ecall(0, 0);
                }
                Exit::Limit => panic!("the program does not end"),
                Exit::Device(_) | Exit::Fetch { .. } => unreachable!("a space without devices and caches"),
            }
        }
    }
}

/// A generator of numbers below a limit.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % limit
    }

    /// A frame of IP with few addresses and ports, or another one, possibly cut.
    fn frame(&mut self) -> Vec<u8> {
        let protocol = [6, 17, 17, 1, 47][self.below(5) as usize];
        let size = [46, 60, 200, 590, 1400][self.below(5) as usize];
        let mut ip = vec![0x45, 0, 0, 0, 0, 7, 0, 0, [64, 2, 1, 0][self.below(4) as usize], protocol, 0, 0];
        ip[2..4].copy_from_slice(&(size as u16).to_be_bytes());
        ip.extend([10, 0, 0, self.below(5) as u8, 10, self.below(2) as u8, 0, self.below(4) as u8]);
        ip.extend([0, 53 + self.below(2) as u8, 0, 53 + self.below(2) as u8]);
        if protocol == 6 {
            let flags = [2, 16, 18][self.below(3) as usize];
            ip.extend([0, 0, 0, self.below(200) as u8, 0, 0, 0, 0, 0x50, flags, 4, 0, 0, 0, 0, 0]);
        }
        ip.resize(size, 0);
        (ip.len()..size).for_each(|_| ip.push(0));
        ip[28..].iter_mut().skip(14).for_each(|byte| *byte = self.below(256) as u8);
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        if self.below(20) == 0 {
            frame[12] = 0x86;
        }
        frame.extend(ip);
        if self.below(20) == 0 {
            frame.truncate(14 + self.below(40) as usize);
        }
        frame
    }
}

fn bytes(of: &[u8]) -> String {
    format!("{of:?}")
}

/// Compares a program on random frames. `timed` programs have values of maps that depend on the clock.
fn compare(name: &str, maps: &[(&str, String)], timed: bool) {
    let file = compiled(name);
    Cores::ALL.into_iter().for_each(|cores| compare_on(cores, name, &file, maps, timed));
}

fn compare_on(cores: Cores, name: &str, file: &[u8], maps: &[(&str, String)], timed: bool) {
    let request = request(name, cores, maps);
    let mut card = Card::new(name, file, cores, &request);
    let object = Object::read(file).unwrap();
    let mut machine = Machine::new(&object, Limits { cpus: CPUS, ..Limits::default() }).unwrap();
    let program = machine.add(&object, object.program(Some(name)).unwrap()).unwrap();
    for (map, text) in maps {
        let number = machine.map_named(map).unwrap();
        fill(&mut machine, number, &object.btf, text, &mut |_, _| Err("no programs".to_owned())).unwrap();
    }
    let arrays = (0..object.maps.len()).filter(|&map| machine.maps[map].kind == MapKind::PerfEvents);
    arrays.collect::<Vec<_>>().into_iter().for_each(|map| machine.open_events(map).unwrap());
    let mut random = Random(7);
    let mut verdicts = BTreeMap::new();
    let mut returned = BTreeMap::new();
    for step in 0..600 {
        let frame = random.frame();
        (card.core, machine.cpu) = (step % CPUS, step % CPUS);
        let queue = random.below(QUEUES);
        let mut packet = Packet::new(&frame, 0).unwrap();
        (packet.interface, packet.queue) = (1, queue);
        let outcome = machine.run(program, &mut packet).unwrap();
        let (code, found) = card.handle(&frame, queue);
        let expected = match (outcome.value, outcome.redirect) {
            (2, _) => HOST,
            (3, _) | (4, Some(Redirect::Interface(_))) => WIRE,
            (4, Some(Redirect::Entry { map, .. })) if machine.maps[map].kind == MapKind::DeviceHash => WIRE,
            _ => DROP,
        };
        assert_eq!(code, expected, "{name}, frame {step}: {outcome:?}");
        if code != DROP {
            let all = packet.bytes();
            assert_eq!(bytes(&found), bytes(&all[packet.metadata()..]), "{name}, frame {step}");
        }
        *verdicts.entry(nicety_ebpf::verdict(outcome.value).unwrap().to_owned()).or_insert(0) += 1;
        *returned.entry(["DROP", "HOST", "WIRE"][code as usize].to_owned()).or_insert(0) += 1;
    }
    assert!(
        verdicts.len() > 1 || name == "queues" || name == "counters" || name == "redirect",
        "{name}: {verdicts:?}"
    );
    let names: Vec<String> = object.maps.iter().map(|map| map.name.clone()).collect();
    let after = after(file, &card.elf, card.data.1, &request, (&returned, &names)).unwrap();
    assert_eq!(after.figures.verdicts, verdicts, "{name}");
    if !timed {
        // Entries of perf events are those of a reader, and a card has none.
        let kept = |(number, _): &(usize, &String)| machine.maps[*number].kind != MapKind::PerfEvents;
        for (number, name) in names.iter().enumerate().filter(kept) {
            let sorted = |dumped: Vec<nicety_ebpf::report::maps::Dumped>| {
                let mut rows: Vec<String> = dumped.iter().map(|row| format!("{row:?}")).collect();
                rows.sort();
                rows
            };
            let expected = nicety_ebpf::report::maps::dump(&machine, number, &object.btf);
            let found = after.maps.get(name).unwrap();
            let found = found.iter().map(|row| format!("{row:?}"));
            let mut found: Vec<String> = found.collect();
            found.sort();
            assert_eq!(found, sorted(expected), "map {name}");
        }
    }
}

#[test]
fn programs_without_entries() {
    for name in ["counters", "queues", "too_long"] {
        compare(name, &[], false);
    }
}

#[test]
fn the_firewall_decides_by_flows() {
    let flow = |source: u32, ports: u32, verdict: u32| {
        let address = u32::from_le_bytes([10, 0, 0, source as u8]);
        let to = u32::from_le_bytes([10, 0, 0, 1]);
        format!(
            "{{\"key\": {{\"source\": {address}, \"destination\": {to}, \"source_port\": {ports}, \"destination_port\": {ports}, \
             \"protocol\": 17}}, \"value\": {verdict}}}"
        )
    };
    let flows = format!("[{}, {}, {}]", flow(1, 53 << 8, 2), flow(2, 53 << 8, 3), flow(3, 54 << 8, 0));
    compare("firewall", &[("flows", flows)], false);
}

#[test]
fn the_router_finds_the_longest_prefix() {
    let route = |bits: u32, address: [u8; 4], station: u8| {
        let address = u32::from_le_bytes(address);
        format!(
            "{{\"key\": {{\"bits\": {bits}, \"address\": {address}}}, \"value\": {{\"destination\": [2, 0, 0, 0, 0, {station}], \
             \"source\": [2, 0, 0, 0, 0, 9], \"interface\": 1}}}}"
        )
    };
    let routes = [route(8, [10, 0, 0, 0], 1), route(16, [10, 1, 0, 0], 2), route(32, [10, 0, 0, 3], 3)];
    compare("router", &[("routes", format!("[{}]", routes.join(", ")))], false);
}

#[test]
fn the_redirect_takes_the_port_of_the_map() {
    compare("redirect", &[("ports", "[{\"key\": 1, \"value\": 4}]".to_owned())], false);
    compare("redirect", &[], false);
}

#[test]
fn the_bucket_limits() {
    compare("bucket", &[], true);
}

fn address(of: [u8; 4]) -> u32 {
    u32::from_le_bytes(of)
}

fn list(entries: impl Iterator<Item = String>) -> String {
    format!("[{}]", entries.collect::<Vec<_>>().join(", "))
}

#[test]
fn the_tunnel_adds_a_header() {
    let ends = (0..3).map(|at| {
        let (key, own, other) = (address([10, 0, 0, at]), address([192, 0, 2, 1]), address([192, 0, 2, 2]));
        format!(
            "{{\"key\": {key}, \"value\": {{\"source\": {own}, \"destination\": {other}, \"station\": [2, 0, 0, 0, 0, {at}]}}}}"
        )
    });
    compare("tunnel", &[("tunnels", list(ends))], false);
}

#[test]
fn the_balancer_keeps_flows() {
    let service = format!(
        "{{\"key\": {{\"address\": {}, \"port\": {}, \"protocol\": 17}}, \"value\": 0}}",
        address([10, 0, 0, 1]),
        53 << 8
    );
    let places = (0..251).map(|place| format!("{{\"key\": {place}, \"value\": {}}}", place % 3));
    let servers = (0..3).map(|at| {
        let address = address([192, 0, 2, at]);
        format!(
            "{{\"key\": {at}, \"value\": {{\"address\": {address}, \"station\": [2, 0, 0, 0, 0, {at}]}}}}"
        )
    });
    let maps = [("services", format!("[{service}]")), ("places", list(places)), ("servers", list(servers))];
    compare("balancer", &maps, false);
}

#[test]
fn cookies_answer_the_protected_port() {
    let port = |number: u32| format!("{{\"key\": {}, \"value\": 1}}", number << 8);
    compare("syncookie", &[("protected_ports", list([53, 54].into_iter().map(port)))], false);
}

#[test]
fn helpers_return_what_they_do_in_the_interpreter() {
    let ports = "[{\"key\": 1, \"value\": 3}, {\"key\": 2, \"value\": 1}]".to_owned();
    let cpus = "[{\"key\": 1, \"value\": 16}]".to_owned();
    compare("helpers", &[("ports", ports), ("cpus", cpus)], false);
}
