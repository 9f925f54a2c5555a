//! A target for each format that nicety reads. The seeds are read; no change of them may panic, and what is read and
//! written is the same.
//!
//! `make test` reads the seeds alone, so that it does the same each time. `make fuzz` changes them for some seconds.

use bolero::check;
use nicety_ebpf::lanes::{Switches, schedule};
use nicety_ebpf::{Limits, Machine, Object, Packet};
use nicety_fuzz::{Edit, edit, seeds};
use nicety_goal::text::DuplicateLabels;
use nicety_goal::{Schedule, binary, text};
use nicety_hpu::{Core, Image, Isa};
use nicety_portals::Header;
use nicety_spec::{SHIPPED, Spec, units};
use nicety_stack::{Parsed, TcpHeader, coalesce, fill, segment, verify};
use nicety_traffic::Traffic;
use nicety_traffic::capture::Capture;
use std::io;

/// A target: its name, other seeds than its own, and a function that says whether a file was read.
macro_rules! target {
    ($name:ident, $others:expr, $read:expr) => {
        #[test]
        fn $name() {
            let read: fn(&[u8]) -> bool = $read;
            let seeds = seeds(stringify!($name), &$others);
            for seed in &seeds {
                assert!(read(seed), "a seed of {} is not valid", stringify!($name));
            }
            check!().with_iterations(0).with_type::<(u8, Vec<Edit>)>().for_each(|(seed, edits)| {
                let mut bytes = seeds[usize::from(*seed) % seeds.len()].clone();
                // Few, so that most of the file is as it was.
                edit(&mut bytes, &edits[..edits.len() % 6]);
                read(&bytes);
            });
        }
    };
}

const PROGRAMS: [&str; 3] =
    ["../hpu/tests/data/program.elf", "../hpu/tests/data/program-64.elf", "../goal/tests/data/matching.elf"];

target!(elf, PROGRAMS, |bytes| {
    let wide = Core { isa: Isa::RV64IMAC, ..Core::default() };
    Image::load(bytes, &Core::default()).is_ok() || Image::load(bytes, &wide).is_ok()
});

const OBJECTS: [&str; 2] = ["../ebpf/tests/data/parts.o", "../ebpf/tests/data/traps.o"];

target!(xdp_object, OBJECTS, |bytes| {
    let Ok(object) = Object::read(bytes) else { return false };
    let limits = Limits { instructions: 10_000, map_bytes: 1 << 24, ..Limits::default() };
    let Ok(mut machine) = Machine::new(&object, limits) else { return false };
    let mut whole = true;
    for entry in &object.programs {
        let Ok(program) = machine.add(&object, entry) else {
            whole = false;
            continue;
        };
        // A trap is an end like any other.
        let _ = machine.run(program, &mut Packet::new(&[1; 64], 4).unwrap());
        if let Ok(linked) = object.link(entry)
            && let Ok(rows) = schedule(&linked, &Switches::all(4))
        {
            let _ = machine.run_rows(program, &rows, &mut Packet::new(&[1; 64], 4).unwrap());
        }
    }
    whole
});

target!(capture, [], |bytes| {
    let Ok(mut capture) = Capture::new(bytes) else { return false };
    let mut whole = true;
    while let Some(packet) = capture.next_packet() {
        match packet {
            Ok(packet) => assert!(packet.length >= packet.bytes.len() as u64),
            Err(_) => whole = false,
        }
    }
    whole && capture.packets() > 0
});

/// Reads a schedule, and says whether it is one. Its written form reads as the same, but for numbers of lines.
fn goal(bytes: &[u8], read: fn(&[u8]) -> Option<Schedule>, write: fn(&Schedule) -> Vec<u8>) -> bool {
    let Some(schedule) = read(bytes) else { return false };
    let written = write(&schedule);
    assert!(write(&read(&written).unwrap()) == written);
    true
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    bytes
}

target!(goal_text, [], |bytes| {
    let read = |bytes: &[u8]| text::read(bytes, DuplicateLabels::Unique, &mut |_| true).ok();
    goal(bytes, read, |schedule| written(|bytes| text::write(schedule, bytes)))
});

target!(goal_binary, [], |bytes| {
    let read = |bytes: &[u8]| binary::read(bytes, &mut |_| true).ok();
    goal(bytes, read, |schedule| written(|bytes| binary::write(schedule, bytes)))
});

target!(tsplib, ["../apps/src/tsp/kroA100.tsp"], |bytes| {
    let text = String::from_utf8_lossy(bytes);
    let Ok(instance) = nicety_apps::tsp::parse(&text, "f.tsp") else { return false };
    let table = instance.cities.table();
    assert_eq!(table.rows().count(), instance.nodes.len());
    true
});

target!(spec, ["../../specs/qnix.toml"], |bytes| {
    let text = String::from_utf8_lossy(bytes);
    match Spec::from_text("card.toml", &text, &[], SHIPPED) {
        Ok(spec) => nicety::designs::read(&spec).is_ok(),
        Err(_) => false,
    }
});

target!(units, [], |bytes| {
    let text = &String::from_utf8_lossy(bytes);
    // A value that is read prints as a text that reads as the same.
    let read = [
        units::parse_time(text).map(|time| units::parse_time(&units::print_time(time)) == Ok(time)),
        units::parse_size(text).map(|size| units::parse_size(&units::print_size(size)) == Ok(size)),
        units::parse_bytes(text).map(|size| units::parse_bytes(&units::print_size(size)) == Ok(size)),
        units::parse_count(text).map(|count| units::parse_count(&count.to_string()) == Ok(count)),
        units::parse_rate(text).map(|rate| units::parse_rate(&rate.to_string()) == Ok(rate)),
        units::parse_gap(text).map(|_| true),
        units::parse_frequency(text)
            .map(|clock| units::parse_frequency(&units::print_frequency(clock)) == Ok(clock)),
    ];
    let meant = units::in_base_unit(text);
    assert_eq!(units::in_base_unit(&meant), meant);
    assert!(read.iter().flatten().all(|same| *same), "{text}");
    read.iter().any(Result::is_ok)
});

target!(traffic, [], |bytes| Traffic::parse(&String::from_utf8_lossy(bytes)).is_ok());

target!(monitor, [], |bytes| match nicety_debug::monitor::Command::parse(bytes) {
    Ok(_) => true,
    Err(error) => {
        assert!(!error.to_string().contains('\n'), "{error}");
        false
    }
});

target!(faults, [], |bytes| nicety::faults::parse(&String::from_utf8_lossy(bytes)).is_ok());

target!(frames, [], |bytes| {
    let Ok(Parsed { ip: Some(ip), .. }) = Parsed::read(bytes) else { return false };
    verify(bytes, &ip);
    let _ = TcpHeader::read(&bytes[ip.payload.clone()]);
    let _ = segment(bytes, 8, |segment| assert!(segment.len() <= bytes.len()));
    let mut frame = bytes.to_vec();
    coalesce(&mut frame, bytes, 9000);
    fill(&mut bytes.to_vec()).is_ok()
});

target!(portals_header, [], |bytes| {
    let Ok(header) = Header::decode(bytes) else { return false };
    assert!(Header::decode(&header.encode()).unwrap() == header);
    true
});
