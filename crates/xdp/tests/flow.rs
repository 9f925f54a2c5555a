//! Programs on the contexts of a network flow processor: references counted by hand, and results, packets and maps beside the
//! interpreter.

use crate::programs::Random;
use crate::toolchain::{Cores, assembled, compiled, linked};
use nicety_ebpf::report::maps::{Dumped, dump, fill};
use nicety_ebpf::translate::Offload;
use nicety_ebpf::{Limits, Machine, Object, Packet};
use nicety_nic_nfp::NfpSpec;
use nicety_nic_nfp::xdp::{Arrival, Ended, Ran, XdpCard, XdpProgram, contexts};
use nicety_spec::{SHIPPED, Spec, parse_override};
use nicety_types::Time;
use nicety_xdp::{Request, after, build, finish};
use std::collections::BTreeMap;

fn spec(overrides: &[&str]) -> NfpSpec {
    let overrides: Vec<_> = overrides.iter().map(|text| parse_override(text).unwrap()).collect();
    let spec = Spec::load("nfp-6000", &overrides, SHIPPED).unwrap();
    let (card, _) = nicety_nic_core::read(&spec, &[nicety_nic_nfp::DESIGN]).unwrap();
    card.of::<NfpSpec>().cloned().unwrap()
}

fn request(name: &str, spec: &NfpSpec, maps: &[(&str, String)]) -> Request {
    let xdp = spec.xdp.unwrap();
    Request {
        program: Some(name.to_owned()),
        isa: Cores::Nfp.isa().to_owned(),
        misaligned: true,
        cluster: None,
        cpus: 8 * spec.cores as u32,
        headroom: xdp.headroom,
        longest: xdp.longest as u32,
        queues: 1,
        cycle_ps: 833,
        memory: 1 << 20,
        frames: false,
        offload: Some(Offload {
            stack: xdp.stack,
            instructions: xdp.program,
            maps: xdp.maps,
            entries: xdp.entries,
            key: xdp.key,
            value: xdp.value,
            entry: xdp.entry,
            updates: xdp.updates,
        }),
        unverified: false,
        lenient: false,
        maps: maps.iter().map(|(name, text)| ((*name).to_owned(), text.clone())).collect(),
    }
}

/// A program of an object on the card, and its ELF file.
fn program(name: &str, file: &[u8], request: &Request, spec: &NfpSpec) -> (XdpProgram, Vec<u8>) {
    let assembly = build(file, request).unwrap().assembly;
    let elf = finish(file, &linked(name, &assembly, Cores::Nfp), request).unwrap();
    (XdpProgram::load(&elf, spec).unwrap(), elf)
}

/// Runs a program on frames that come `gap_ns` after each other.
fn run(name: &str, spec: &NfpSpec, maps: &[(&str, String)], frames: &[Vec<u8>], gap_ns: u64) -> Ran {
    let request = request(name, spec, maps);
    let (program, _) = program(name, &compiled(name), &request, spec);
    run_program(&program, spec, frames, gap_ns)
}

fn run_program(program: &XdpProgram, spec: &NfpSpec, frames: &[Vec<u8>], gap_ns: u64) -> Ran {
    let at = |number: usize| Time::from_ps((number as u64 + 1) * gap_ns * 1000);
    let frames =
        frames.iter().enumerate().map(|(number, bytes)| Arrival { at: at(number), bytes: bytes.clone() });
    XdpCard::new(spec, program, None).unwrap().run(frames.collect(), true).unwrap()
}

fn udp() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46, 0, 7, 0, 0, 64, 17, 0, 0];
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 0, 53]);
    frame.resize(60, 0);
    frame
}

const FLOW: &str = r#"[{"key": {"source": 16777226, "destination": 33554442, "source_port": 13568,
    "destination_port": 13568, "protocol": 17}, "value": 3}]"#;

#[test]
fn references_of_a_frame_are_those_of_its_path() {
    // Three are the MAC's bytes in front of the frame, the list of actions, and the descriptor behind the program.
    //
    // flow_turn reads and writes six halves of words. flow_count reads the protocol and the length and the table of maps. It adds
    // twice with a word each. The second sum has an upper word. flow_filter reads six members of headers. It reads the table,
    // a bucket and an entry. Then it reads the value and the table again, and adds.
    let spec = spec(&[]);
    let flows = [("flows", FLOW.to_owned())];
    let cases = [
        ("flow_drop", &[][..], 3, 1),
        ("flow_pass", &[][..], 3, 2),
        ("flow_turn", &[][..], 3 + 12, 3),
        ("flow_count", &[][..], 3 + 2 + 1 + 3, 1),
        ("flow_filter", &flows[..], 3 + 6 + 3 + 1 + 1 + 1, 3),
    ];
    for (name, maps, references, verdict) in cases {
        let ran = run(name, &spec, maps, &[udp()], 1);
        let [ended] = &ran.ended[..] else { panic!("{name}: one frame") };
        assert_eq!((ended.verdict, ran.contexts.references), (verdict, references), "{name}");
    }
}

#[test]
fn the_time_of_a_dropped_frame_is_that_of_its_steps() {
    // CTM writes 68 bytes, 8 a cycle: 9 cycles and its latency. A signal wakes the context. It reads 8 bytes of CTM and 64 of
    // CLS, and writes 16 bytes to CTM. The firmware's instructions come to the context's own.
    let spec = spec(&[]);
    let xdp = spec.xdp.unwrap();
    let [cls, ctm, ..] = &spec.memories;
    // All contexts sleep when the frame comes.
    let ran = run("flow_drop", &spec, &[], &[udp()], 10_000);
    let Ended { arrived, taken, at, .. } = ran.ended[0];
    let cycles = |from: Time, to: Time| (to.since(from).ps() as f64 / (10_000.0 / 12.0)).round() as u64;
    // The port's frame comes within a cycle.
    assert!((ctm.write + 8..=ctm.write + 9).contains(&cycles(arrived, taken)), "{}", cycles(arrived, taken));
    let asleep = spec.signal + ctm.read + (cls.read + 7) + (ctm.write + 1);
    // Only one context computes for the frame, beside the first call of each. It gets the core from another one.
    let computing = ran.contexts.computing - run("flow_drop", &spec, &[], &[], 1).contexts.computing;
    assert!((xdp.before + xdp.behind..xdp.before + xdp.behind + 80).contains(&computing), "{computing}");
    // The way to the next call is no part of the frame's.
    let whole = cycles(taken, at);
    let behind = asleep + computing + spec.switch - whole;
    assert!((1..12).contains(&behind), "{whole} of {asleep} and {computing}");
}

#[test]
fn frames_beyond_the_buffers_are_lost() {
    // Each island has one context and one buffer; two frames more may wait.
    let spec = spec(&["xdp.workers=1", "xdp.contexts=1", "xdp.buffers=1", "xdp.queue=2"]);
    assert_eq!(contexts(&spec), 5);
    let ran = run("flow_drop", &spec, &[], &vec![udp(); 20], 0);
    assert_eq!((ran.ended.len(), ran.lost), (7, 13));
    assert_eq!(ran.waiting, 2);
}

/// Compares a program with the interpreter on random frames that come at a rate of many contexts at once.
fn compare(name: &str, maps: &[(&str, String)]) {
    let spec = spec(&["xdp.queue=1000"]);
    let file = compiled(name);
    let request = request(name, &spec, maps);
    let object = Object::read(&file).unwrap();
    let mut machine = Machine::new(&object, Limits::default()).unwrap();
    let own = machine.add(&object, object.program(Some(name)).unwrap()).unwrap();
    for (map, text) in maps {
        let number = machine.map_named(map).unwrap();
        fill(&mut machine, number, &object.btf, text, &mut |_, _| Err("no programs".to_owned())).unwrap();
    }
    let mut random = Random(11);
    let frames: Vec<Vec<u8>> = (0..500).map(|_| random.frame()).collect();
    let mut ran = run(name, &spec, maps, &frames, 10);
    ran.ended.sort_by_key(|ended| ended.number);
    assert_eq!((ran.ended.len(), ran.lost), (500, 0));
    let mut verdicts: BTreeMap<String, u64> = BTreeMap::new();
    for (frame, ended) in frames.iter().zip(&ran.ended) {
        let mut packet = Packet::new(frame, 0).unwrap();
        packet.interface = 1;
        let outcome = machine.run(own, &mut packet).unwrap();
        let number = ended.number;
        assert_eq!(ended.verdict, outcome.value, "{name}, frame {number}");
        if [2, 3].contains(&ended.verdict) {
            assert_eq!(
                format!("{:?}", ended.bytes),
                format!("{:?}", packet.bytes()),
                "{name}, frame {number}"
            );
        }
        *verdicts.entry(nicety_ebpf::verdict(outcome.value).unwrap().to_owned()).or_default() += 1;
    }
    let count = |name: &str| verdicts.get(name).copied().unwrap_or(0);
    let dropped = count("XDP_DROP") + count("XDP_ABORTED");
    let returned = [("DROP", dropped), ("HOST", count("XDP_PASS")), ("WIRE", count("XDP_TX"))];
    let returned = returned.map(|(name, count)| (name.to_owned(), count)).into();
    let names: Vec<String> = object.maps.iter().map(|map| map.name.clone()).collect();
    let (_, elf) = program(name, &file, &request, &spec);
    let found = after(&file, &elf, ran.variables, &request, (&returned, &names)).unwrap();
    assert_eq!(found.figures.verdicts, verdicts, "{name}");
    assert!(verdicts.len() > 1, "{name}: {verdicts:?}");
    let sorted = |rows: &[Dumped]| {
        let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        rows.sort();
        rows
    };
    for (number, map) in names.iter().enumerate() {
        let expected = dump(&machine, number, &object.btf);
        assert_eq!(sorted(&found.maps[map]), sorted(&expected), "{name}, map {map}");
    }
}

#[test]
fn programs_have_the_results_of_the_interpreter() {
    let known = |at: u32, verdict: u32| {
        let [source, destination] = [5, 4].map(|count| 0x0a + ((at % count) << 24));
        format!(
            r#"{{"key": {{"source": {source}, "destination": {destination}, "source_port": 13568,
                "destination_port": 13568, "protocol": 17}}, "value": {verdict}}}"#
        )
    };
    let flows: Vec<String> = (0..20).map(|at| known(at, at % 4)).collect();
    compare("flow_count", &[][..]);
    compare("flow_filter", &[("flows", format!("[{}]", flows.join(",")))]);
    compare("flow_change", &[]);
}

/// A program of random arithmetic on words of the packet, in eBPF's assembly. It changes the packet, and sends it.
fn arithmetic(random: &mut Random) -> String {
    let mut text =
        "\t.section xdp,\"ax\"\n\t.globl arithmetic\n\t.type arithmetic,@function\narithmetic:\n".to_owned();
    text +=
        "\tr2 = *(u32 *)(r1 + 0)\n\tr3 = *(u32 *)(r1 + 4)\n\tr4 = r2\n\tr4 += 40\n\tif r4 > r3 goto far\n";
    for register in 5..10 {
        text += &format!("\tr{register} = *(u32 *)(r2 + {})\n", random.below(36));
    }
    for _ in 0..60 {
        let [to, from] = [5 + random.below(5), 5 + random.below(5)];
        let number = random.below(1 << 30) << 1 >> random.below(30);
        let shift = random.below(32);
        text += &match random.below(12) {
            // Small divisors too, and those for which a reciprocal has 33 bits.
            0 => format!(
                "\tw{to} = w{to}\n\tw{to} /= {}\n",
                [1, 2, 3, 7, 10, 641, 0x7fff_ffff, number.max(1)][random.below(8) as usize]
            ),
            1 => format!("\tw{to} = w{to}\n\tw{to} /= {}\n", random.below(200) + 1),
            2 => format!("\tw{to} = w{to}\n\tw{from} = w{from}\n\tw{to} *= w{from}\n"),
            3 => format!("\tw{to} = w{to}\n\tw{from} = w{from}\n\tr{to} *= r{from}\n\tr{to} ^= {number}\n"),
            4 => format!("\tr{to} += r{from}\n"),
            5 => format!("\tr{to} -= r{from}\n"),
            6 => format!("\tr{to} <<= {shift}\n\tr{to} s>>= {}\n", random.below(64)),
            7 => format!("\tw{to} <<= {shift}\n"),
            8 => format!("\tw{to} ^= {number}\n\tr{to} |= r{from}\n"),
            9 => format!("\tr{to} = be{} r{to}\n", [16, 32, 64][random.below(3) as usize]),
            10 => format!(
                "\t*(u{} *)(r2 + {}) = r{from}\n",
                [8, 16, 32, 64][random.below(4) as usize],
                random.below(32)
            ),
            _ => format!(
                "\tr{to} = *(u{} *)(r2 + {})\n",
                [8, 16, 32, 64][random.below(4) as usize],
                random.below(32)
            ),
        };
    }
    for register in 5..10 {
        text += &format!("\t*(u64 *)(r2 + {}) = r{register}\n", 8 * (register - 5));
    }
    text + "\tw0 = 3\n\texit\nfar:\n\tw0 = 1\n\texit\n\t.size arithmetic,.-arithmetic\n"
}

#[test]
fn random_arithmetic_is_that_of_the_interpreter() {
    let spec = spec(&[]);
    for seed in 0..12 {
        let mut random = Random(seed);
        let name = format!("arithmetic_{seed}");
        let file = assembled(&name, &arithmetic(&mut random));
        let (own, _) = program(&name, &file, &request("arithmetic", &spec, &[]), &spec);
        let object = Object::read(&file).unwrap();
        let mut machine = Machine::new(&object, Limits::default()).unwrap();
        let number = machine.add(&object, object.program(None).unwrap()).unwrap();
        let frame = |random: &mut Random| (0..60).map(|_| random.below(256) as u8).collect();
        let frames: Vec<Vec<u8>> = (0..20).map(|_| frame(&mut random)).collect();
        let mut ran = run_program(&own, &spec, &frames, 10);
        ran.ended.sort_by_key(|ended| ended.number);
        assert_eq!(ran.ended.len(), frames.len());
        for (frame, ended) in frames.iter().zip(&ran.ended) {
            let mut packet = Packet::new(frame, 0).unwrap();
            assert_eq!(machine.run(number, &mut packet).unwrap().value, ended.verdict, "seed {seed}");
            assert_eq!(format!("{:?}", ended.bytes), format!("{:?}", packet.bytes()), "seed {seed}");
        }
    }
}
