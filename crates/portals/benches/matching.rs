//! Measures the CPU time per message. Run it with `cargo bench -p nicety-portals`.

use cpu_time::ThreadTime;
use nicety_portals::*;
use nicety_types::NodeId;
use std::hint::black_box;

/// Prints the CPU time per message in nanoseconds, the minimum of five runs.
fn time(what: &str, messages: u32, mut message: impl FnMut()) {
    let best = (0..5).map(|_| {
        let start = ThreadTime::now();
        (0..messages).for_each(|_| message());
        start.elapsed().as_nanos() as f64 / f64::from(messages)
    });
    println!("{what:55} {:8.1} ns", best.fold(f64::INFINITY, f64::min));
}

/// Returns an interface with a list of `entries` match entries. Only the last entry accepts match bits 0.
fn interface(entries: u64) -> (Interface, CtHandle, Effects) {
    let mut ni = Interface::new(NodeId(0), Limits::default());
    let mut effects = Effects::new();
    let ct = ni.ct_alloc().expect("room");
    ni.pt_alloc(Some(0), None).expect("room");
    for match_bits in (0..entries).rev() {
        let options = MeOptions::OP_PUT | MeOptions::EVENT_CT_COMM;
        let me = Me { length: 64, match_bits, ct: Some(ct), options, ..Me::default() };
        ni.me_append(0, me, List::Priority, &mut effects).expect("room");
    }
    (ni, ct, effects)
}

fn main() {
    for entries in [1, 16, 1000] {
        let (mut ni, _, mut effects) = interface(entries);
        let header = Header::put(NodeId(1), NodeId(0), 0, 0, 8);
        let count = 20_000_000 / (20 + entries as u32);
        time(&format!("arrive and complete, {entries} entries, last matches"), count, || {
            let Arrival::Matched(delivery) = ni.arrive(black_box(&header), &mut effects) else {
                unreachable!()
            };
            ni.complete(black_box(&delivery), FailType::Ok, &mut effects).expect("once");
            effects.clear();
        });
    }
    let (mut ni, ct, mut effects) = interface(1);
    let md = ni.md_bind(Md { length: 64, ..Md::default() }).expect("room");
    let put = PutRequest::new(md, 8, NodeId(1), 0, 0);
    let (header, mut threshold) = (Header::put(NodeId(1), NodeId(0), 0, 0, 8), 0);
    time("the same, setting off a triggered put", 1_000_000, || {
        threshold += 1;
        ni.trigger(&put.into(), ct, threshold, &mut effects).expect("room");
        let Arrival::Matched(delivery) = ni.arrive(black_box(&header), &mut effects) else { unreachable!() };
        ni.complete(black_box(&delivery), FailType::Ok, &mut effects).expect("once");
        let started = effects.drain().find_map(|e| if let Effect::Start(out) = e { Some(out) } else { None });
        ni.sent(started.expect("due").operation, FailType::Ok, &mut effects).expect("once");
        effects.clear();
    });
}
