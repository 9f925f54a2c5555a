//! nicety's programs, translated and with the runtime, against the interpreter: results, packets and maps.

use crate::card::{CPUS, Card, QUEUES, request};
use crate::toolchain::{Cores, compiled};
use nicety_ebpf::report::maps::fill;
use nicety_ebpf::{Aborted, Limits, Machine, MapKind, Object, Packet, Redirect};
use nicety_xdp::{Request, after, build};
use std::collections::BTreeMap;

/// Return codes of frame handlers.
const DROP: u32 = 0;
const HOST: u32 = 1;
const WIRE: u32 = 2;

/// A generator of numbers below a limit.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % limit
    }

    /// A frame of IP with few addresses and ports, or another one, possibly cut.
    pub(crate) fn frame(&mut self) -> Vec<u8> {
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

/// Programs that need no context.
const DIRECT: [&str; 8] =
    ["balancer", "bucket", "counters", "firewall", "redirect", "router", "too_long", "tunnel"];

/// Compares a program on random frames. `timed` programs have values of maps that depend on the clock.
fn compare(name: &str, maps: &[(&str, String)], timed: bool) {
    let file = compiled(name);
    for (cores, frames, unverified) in [
        (Cores::Rv32, false, false),
        (Cores::Rv64, false, false),
        (Cores::Rv32, true, false),
        (Cores::Rv64, true, false),
        (Cores::Rv64, true, true),
    ] {
        let request = Request { frames, unverified, ..request(name, cores, maps) };
        let direct = build(&file, &request).unwrap().direct;
        assert_eq!(direct, frames && !unverified && DIRECT.contains(&name), "{name}");
        // Only programs that are the handler themselves differ there.
        if direct || unverified || !frames {
            compare_on(request, cores, &file, (maps, timed));
        }
    }
}

fn compare_on(request: Request, cores: Cores, file: &[u8], (maps, timed): (&[(&str, String)], bool)) {
    let name = request.program.as_deref().unwrap();
    let case = format!("{name}_{}_{}", request.frames, request.unverified);
    let mut card = Card::new(&case, file, cores, &request);
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
    let mut aborted = Vec::new();
    for step in 0..600 {
        let frame = random.frame();
        (card.core, machine.cpu) = (step % CPUS, step % CPUS);
        let queue = random.below(QUEUES);
        let mut packet = Packet::new(&frame, 0).unwrap();
        (packet.interface, packet.queue) = (1, queue);
        let outcome = machine.run(program, &mut packet).unwrap();
        if let Some(site) = &outcome.aborted {
            Aborted::add(&mut aborted, site, 1);
        }
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
    let sorted = |all: Vec<Aborted>| {
        let mut rows: Vec<_> = all.into_iter().map(|each| (each.program, each.place, each.frames)).collect();
        rows.sort();
        rows
    };
    assert_eq!(sorted(after.figures.aborted_at), sorted(aborted.clone()), "{name}");
    assert!(name != "aborted" || aborted.len() > 5, "{aborted:?}");
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
fn the_instructions_of_helpers_count() {
    let file = compiled("firewall");
    for cores in Cores::ALL {
        let mut card = Card::new("firewall", &file, cores, &request("firewall", cores, &[]));
        let ip = [&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17][..], &[0; 36]].concat();
        let frame = |kind: u8| [&[2; 12][..], &[8, kind], &ip].concat();
        let ((dropped, looked), (passed, other)) = (card.program(&frame(0), 0), card.program(&frame(6), 0));
        assert_eq!((dropped, passed), (1, 2));
        // The other frame needs no lookup in the hash. Its hash function alone has some 20 instructions.
        assert!(looked > other + 40, "{cores:?}: {looked} and {other}");
    }
}

/// The checker of handlers forgives races between lookups and updates in functions of the runtime alone.
#[test]
fn lookups_are_in_place_but_for_the_checker() {
    let file = compiled("balancer");
    for cores in Cores::ALL {
        for lenient in [false, true] {
            let request = Request { frames: true, lenient, ..request("balancer", cores, &[]) };
            let code = build(&file, &request).unwrap().code;
            for name in ["nicety_bpf_map_lookup_hash8", "nicety_bpf_map_lookup_lru16"] {
                assert_eq!(code.contains(name), lenient, "{cores:?}: {name}");
            }
        }
    }
}

/// Entries of one bucket, in plain and LRU hashes: a lookup follows their chain, or misses at its end.
#[test]
fn lookups_in_place_follow_chains() {
    let service = |address: u32| {
        format!(
            "{{\"key\": {{\"address\": {address}, \"port\": {}, \"protocol\": 17}}, \"value\": 0}}",
            53 << 8
        )
    };
    // All 16 services: some of their buckets have several.
    let services = list((0..16).map(|at| service(address([10, 0, 0, at]))));
    let places = list((0..251).map(|place| format!("{{\"key\": {place}, \"value\": {}}}", place % 2)));
    let servers = list((0..2).map(|at| {
        let address = address([192, 0, 2, at]);
        format!(
            "{{\"key\": {at}, \"value\": {{\"address\": {address}, \"station\": [2, 0, 0, 0, 0, {at}]}}}}"
        )
    }));
    compare("balancer", &[("services", services), ("places", places), ("servers", servers)], false);
}

#[test]
fn each_abort_has_its_line() {
    compare("aborted", &[], false);
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

/// Addresses of two networks differ in their last byte, the high one of a number: a lookup takes as long as with few flows.
#[test]
fn flows_between_two_networks_have_short_chains() {
    let flow = |from: u32, to: u32| {
        let (source, destination) = (address([10, 0, 0, from as u8]), address([10, 0, 1, to as u8]));
        format!(
            "{{\"key\": {{\"source\": {source}, \"destination\": {destination}, \"source_port\": 0, \"destination_port\": 0, \
             \"protocol\": 17}}, \"value\": 2}}"
        )
    };
    let flows = list((0..4096).map(|number| flow(number / 64, number % 64)));
    let file = compiled("firewall");
    for cores in Cores::ALL {
        let request = request("firewall", cores, &[("flows", flows.clone())]);
        let mut card = Card::new("firewall", &file, cores, &request);
        let mut most = 0;
        for number in (0..4096u16).step_by(61) {
            let addresses = [10, 0, 0, (number / 64) as u8, 10, 0, 1, (number % 64) as u8];
            let ip = [&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0][..], &addresses, &[0; 26]].concat();
            let (verdict, instructions) = card.program(&[&[2; 12][..], &[8, 0], &ip].concat(), 0);
            assert_eq!(verdict, 2, "{cores:?}: flow {number}");
            most = most.max(instructions);
        }
        // A further entry of a chain has some 7 instructions.
        assert!(most < 240, "{cores:?}: {most} instructions");
    }
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
