//! Packets on a card with clusters of processors: the cluster, the processor and the times of each packet.

use crate::support::code::{Code, payload, program};
use crate::support::*;
use nicety_fabric::Faults;
use nicety_hpu::asm::*;
use nicety_kernel::Config;
use nicety_nic_processors::Handlers;
use nicety_types::NodeRecords as Records;
use nicety_types::{Level, Recorder};

/// The clusters run at 1 GHz, so a cycle takes 1 ns. An instruction takes one cycle.
const CLUSTERS: [&str; 17] = [
    "hpu.scheduling=home-cluster",
    "hpu.cores=32",
    "hpu.clock=1 GHz",
    "hpu.cycles.handler_end=4",
    "hpu.packets.beat=64 B",
    "hpu.packets.schedule=4",
    "hpu.packets.copy=16",
    "hpu.packets.feedback=1",
    "hpu.packets.in_flight=20",
    "hpu.packets.copies=8",
    "hpu.packets.burst=2 KiB",
    "memory.cluster=8",
    "match.first=0 ns",
    "match.further=0 ns",
    "send.gap=0 ns",
    "bus.latency=0 ns",
    "hpu.code=64 KiB",
];

/// Returns the records of `messages` messages to these handlers. Each message has `packets` packets of `bytes` bytes.
fn records(handlers: &Handlers, overrides: &[&str], messages: u64, packets: u64, bytes: u64) -> Records {
    let recorder = Recorder::new(Level::Packets, 10_000);
    let payload = format!("packet.payload={bytes} B");
    let all: Vec<_> =
        CLUSTERS.iter().copied().chain([payload.as_str()]).chain(overrides.iter().copied()).collect();
    let mut rig =
        Rig::recorded(&all, Config::default(), &Faults::default(), [Recorder::off(), recorder.clone()]);
    let length = (packets * bytes) as usize;
    rig.program(0, async move |a| {
        let request = a.request(&a.alloc(&vec![1; length]), 5);
        a.start().await;
        for _ in 0..messages {
            a.put(&request).await.unwrap();
        }
    });
    let handlers = handlers.clone();
    rig.program(1, async move |b| {
        let memory = b.alloc(&vec![0; length]);
        b.append_with(entry(&memory, 5), &handlers, &[0; 64]).await.unwrap();
    });
    rig.run();
    assert_eq!(rig.failures(), []);
    recorder.take()
}

/// Returns the time in ns that each packet spends in the packet buffer.
fn latencies(records: &Records) -> Vec<u64> {
    let times = records.packets_arrived.iter();
    times.map(|packet| packet.settled.unwrap().since(packet.arrived).ps() / 1000).collect()
}

/// Returns the processors that ran payload handlers, in the order of their starts.
fn processors(records: &Records) -> Vec<u32> {
    let mut runs: Vec<_> = records.handler_runs.iter().map(|run| (run.start, run.offset, run.hpu)).collect();
    runs.sort_unstable();
    runs.into_iter().map(|(_, _, hpu)| hpu).collect()
}

/// Returns a handler that takes three cycles.
fn short() -> Handlers {
    payload(Code::new().returns(0))
}

/// Returns a handler that takes 2 + 4 x 1000 - 2 cycles, and three cycles for its return.
fn long() -> Handlers {
    payload(Code::new().spin(1000).returns(0))
}

#[test]
fn an_unloaded_packet_passes_the_stages_of_its_beats() {
    // A packet of n beats takes n cycles to be written, 4 to be scheduled and 16 + n to be copied. Its handler takes 3,
    // the handler's end 4, and the feedback 1.
    for (bytes, beats) in [(8, 1), (64, 1), (65, 2), (1024, 16), (2048, 32)] {
        let records = records(&short(), &[], 1, 1, bytes);
        assert_eq!(latencies(&records), [28 + 2 * beats], "{bytes} bytes");
        assert_eq!(processors(&records), [0]);
    }
}

#[test]
fn bursts_of_a_long_packet_are_copied_one_behind_the_other() {
    // The packet has 48 beats, in two bursts.
    assert_eq!(latencies(&records(&short(), &[], 1, 1, 3072)), [28 + 2 * 48]);
    // With one burst in flight, the second burst begins when the first burst has arrived.
    let one = ["hpu.packets.copies=1"];
    assert_eq!(latencies(&records(&short(), &one, 1, 1, 3072)), [28 + 2 * 48 + 16]);
}

#[test]
fn a_packet_stays_in_its_home_cluster_until_that_has_twenty() {
    // Packets of 64 B arrive every 20 ns. A handler takes longer than the arrival of all packets.
    let records = records(&long(), &["link.gap=312.5 ps/B"], 1, 32, 64);
    let mut first: Vec<_> = processors(&records);
    let later = first.split_off(20);
    // Eight packets run in the home cluster, and twelve wait there. The next twelve packets go to the least occupied
    // clusters, each to the idle processor with the lowest number.
    assert_eq!(first, [0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 24, 9, 17, 25, 10, 18, 26, 11, 19, 27]);
    // Then the packets that wait in the home cluster run, on most processors two of them.
    assert_eq!(later, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3]);
}

#[test]
fn messages_have_homes_in_turn() {
    let records = records(&short(), &["host.post=1 us"], 5, 1, 64);
    assert_eq!(processors(&records), [0, 8, 16, 24, 0]);
}

#[test]
fn packets_that_find_every_cluster_full_wait_in_order() {
    let few = ["hpu.packets.in_flight=1", "hpu.cores=16", "link.gap=312.5 ps/B"];
    let records = records(&long(), &few, 1, 6, 64);
    assert_eq!(processors(&records), [0, 8, 0, 8, 0, 8]);
    let starts: Vec<_> = records.handler_runs.iter().map(|run| (run.start, run.offset.unwrap())).collect();
    let mut sorted = starts.clone();
    sorted.sort_unstable();
    assert_eq!(sorted.iter().map(|(_, offset)| offset / 64).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    // The first two packets run. The third packet is copied in 17 cycles, from the feedback of the first packet on.
    let run = |index: u64| records.handler_runs.iter().find(|run| run.offset == Some(64 * index)).unwrap();
    assert_eq!(run(2).start.since(run(0).end).ps(), (1 + 17) * 1000);
}

#[test]
fn header_and_completion_handlers_are_scheduled_too() {
    let handlers =
        program(Some(Code::new().returns(2)), Some(Code::new().returns(0)), Some(Code::new().returns(0)));
    let records = records(&handlers, &[], 1, 2, 64);
    let mut runs: Vec<_> = records.handler_runs.iter().map(|run| (run.start, run.kind)).collect();
    runs.sort_unstable();
    assert_eq!(
        runs.iter().map(|(_, kind)| *kind).collect::<Vec<_>>(),
        ["header", "payload", "payload", "completion"]
    );
    // Counted from the end of the header handler: feedback 1, scheduling 4, and 17 to copy one beat.
    let header = records.handler_runs.iter().find(|run| run.kind == "header").unwrap();
    assert_eq!(runs[1].0.since(header.end).ps(), (1 + 4 + 17) * 1000);
    // A completion handler has no packet to copy.
    let last =
        records.handler_runs.iter().filter(|run| run.kind == "payload").map(|run| run.end).max().unwrap();
    assert_eq!(runs[3].0.since(last).ps(), (1 + 4 + 16) * 1000);
}

#[test]
fn accesses_wait_for_dma_to_their_group_of_banks() {
    // The handler loads ten words at the start of its packet, one after another, from cycle 2 on. A packet of 1 KiB
    // arrives every 20 ns: 16 beats in 20 cycles.
    let loads = || {
        let words: Vec<_> = (0..10).map(|word| lw(T1, 4 * word, T0)).collect();
        payload(Code::new().with(&[lw(T0, 0, A0), nop()]).with(&words).returns(0))
    };
    let cycles = |overrides: &[&str], packets| -> Vec<_> {
        let l1 = ["memory.packet=l1", "memory.l1.load=1", "memory.l1.store=1", "memory.l1.atomic=1"];
        let overrides = [&l1[..], &["link.gap=19.53125 ps/B"], overrides].concat();
        let records = records(&loads(), &overrides, 1, packets, 1024);
        let mut runs: Vec<_> = records.handler_runs.iter().map(|run| (run.offset, run.cycles)).collect();
        runs.sort_unstable();
        runs.into_iter().map(|(_, cycles)| cycles).collect()
    };
    let alone = 2 + 10 + 3 + 4;
    assert_eq!(cycles(&["hpu.packets.bank_groups=4"], 1), [alone], "its own beats are over");
    // A handler begins with the last beat of its packet. The beats of the next packet are in the handler's cycles 4 to
    // 19. The beats in cycles 4, 8, 12 and 16 use the bank group of both packets' first bytes. The loads are in cycles
    // 2, 3, 4 + 1, 6, 7, 8 + 1, 10, 11, 12 + 1 and 14, where + 1 is a wait.
    let streamed = cycles(&["hpu.packets.bank_groups=4"], 20);
    assert_eq!(streamed[..19], [alone + 3; 19]);
    assert_eq!(streamed[19], alone);
    // With two groups, the beats in cycles 4, 6, 8, 10, 12, 14, 16 and 18 use this group. The loads are in cycles 2, 3,
    // 4 + 1, 6 + 1, 8 + 1, 10 + 1, 12 + 1, 14 + 1, 16 + 1 and 18 + 1.
    assert_eq!(cycles(&["hpu.packets.bank_groups=2"], 20)[..19], [alone + 8; 19]);
    assert_eq!(cycles(&[], 20), [alone; 20], "where DMA is in no core's way");
    // If the packets are in a level other than L1, the loads do not wait.
    let elsewhere = ["hpu.packets.bank_groups=4", "memory.packet=ideal", "memory.stack=l1"];
    assert_eq!(cycles(&elsewhere, 20), [alone; 20]);
}
