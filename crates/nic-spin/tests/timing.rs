//! Times calculated by hand, to the picosecond. Times in comments are in nanoseconds. The numbers are those of the card
//! spin-discrete.

use crate::support::code::{Code, echo, number, payload, put};
use crate::support::*;
use nicety_portals::{EventKind, Md, PutRequest};
use nicety_types::{NodeId, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// The results that programs report.
type Notes<T> = Rc<RefCell<Vec<T>>>;

fn notes<T>() -> Notes<T> {
    Rc::default()
}

#[test]
fn a_put_of_8_bytes_by_rdma() {
    let mut rig = Rig::new(&[]);
    rig.program(0, async |a| {
        let out = a.alloc(&pattern(8, 1));
        let request = a.request(&out, 5);
        a.start().await;
        a.put(&request).await.unwrap();
        assert_eq!(a.sim.now(), after(65_000));
    });
    rig.program(1, async |b| {
        let memory = b.alloc(&[0; 8]);
        b.append(entry(&memory, 5)).await.unwrap();
        b.start().await;
        let event = b.event(EventKind::Put).await;
        assert_eq!((event.rlength, event.mlength, event.initiator), (8, 8, NodeId(0)));
        assert_eq!(b.read(&memory), pattern(8, 1));
        assert_eq!(b.sim.now(), after(693_685));
        assert_eq!(
            b.parts(),
            [
                ("post", 65_000),
                ("bus", 250_000),
                ("link", 33_560),
                ("match", 30_000),
                ("deposit", 250_125),
                ("notice", 65_000)
            ]
        );
    });
    rig.run();
}

/// Rank 0 puts `len` bytes to rank 1, and the program `answer` sends them back. Returns the time of the round trip in
/// ps, and the time of each of its stages.
fn round_trip<F>(len: usize, answer: impl FnOnce(Node) -> F) -> (u64, Vec<(&'static str, u64)>)
where
    F: Future<Output = ()> + 'static,
{
    let mut rig = Rig::new(&[]);
    let result = notes();
    let note = result.clone();
    rig.program(0, async move |a| {
        let (out, back) = (a.alloc(&pattern(len, 3)), a.alloc(&vec![0; len]));
        a.append(counted(&back, 9, a.ct)).await.unwrap();
        let request = a.request(&out, 5);
        a.start().await;
        a.put(&request).await.unwrap();
        a.count(a.ct, 1).await.unwrap();
        assert_eq!(a.read(&back), pattern(len, 3));
        note.borrow_mut().push((a.sim.now().since(START).ps(), a.parts()));
    });
    rig.program(1, answer);
    rig.run();
    assert_eq!(rig.failures(), []);
    result.take().pop().unwrap()
}

#[test]
fn a_payload_handler_answers_8_bytes() {
    let (time, parts) = round_trip(8, async |b| {
        let memory = b.alloc(&[0; 8]);
        b.append_with(entry(&memory, 5), &payload(echo()), &put(9, 0, 0, false)).await.unwrap();
    });
    // The instructions lw, lw, mv, mv, addi precede the ecall, at cycle 5: 2 ns after the handler's start.
    assert_eq!(time, 757_245 + 2_000);
    let expected = [
        ("post", 65_000),
        ("bus", 250_000),
        ("link", 2 * 33_560),
        ("match", 60_000),
        ("handler", 2_000),
        ("deposit", 250_125),
        ("notice", 65_000),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn a_triggered_put_answers_8_bytes() {
    let (time, parts) = round_trip(8, async |b| {
        let memory = b.alloc(&[0; 8]);
        b.append(counted(&memory, 5, b.ct)).await.unwrap();
        let request = PutRequest::new(b.md(&memory), 8, NodeId(0), PT, 9);
        b.triggered_put(request, b.ct, 1).await.unwrap();
    });
    // The fetch waits for 0.125 behind the deposit. Request and data take 500. The 0.125 of the data are hidden by the
    // link.
    assert_eq!(time, 1_257_370);
    assert_eq!(parts.iter().find(|(stage, _)| *stage == "fetch"), Some(&("fetch", 500_000)));
}

#[test]
fn handlers_start_and_end_and_commands_cost_what_the_spec_says() {
    let mut rig = Rig::new(&["hpu.cycles.handler_start=10", "hpu.cycles.handler_end=7", "host.notice=0 ns"]);
    rig.program(0, async |a| {
        let (out, back) = (a.alloc(&[0; 8]), a.alloc(&[0; 8]));
        a.append(counted(&back, 9, a.ct)).await.unwrap();
        a.start().await;
        a.put(&a.request(&out, 5)).await.unwrap();
        a.count(a.ct, 1).await.unwrap();
        // The handler's start takes 10 cycles of 0.4 and precedes the put. The cycles of the handler's end follow the
        // put.
        assert_eq!(a.sim.now(), after(757_245 - 65_000 + 2_000 + 4_000));
    });
    rig.program(1, async |b| {
        let memory = b.alloc(&[0; 8]);
        b.append_with(entry(&memory, 5), &payload(echo()), &put(9, 0, 0, false)).await.unwrap();
        b.start().await;
        b.event(EventKind::Put).await;
        // The packet has matched at 65 + 250 + 33.56 + 30. The handler takes 10 cycles for its start, 5 to the ecall, 3
        // for li and ret, and 7 for its end: 25 cycles. Then comes the event.
        assert_eq!(b.sim.now(), after(378_560 + 10_000 + 250_000));
    });
    rig.run();
    assert_eq!(rig.nodes[1].card.processors().handler_statistics().cycles, 25);
    assert_eq!(rig.nodes[1].card.processors().handler_statistics().instructions, 8);
}

/// Returns the times at which rank 1 sees the events of puts that rank 0 posts at the same time. Matching and posting
/// take no simulated time.
fn arrivals(lengths: &'static [usize]) -> Vec<u64> {
    let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns", "match.first=0 ns", "match.further=0 ns"]);
    let times = notes();
    let note = times.clone();
    rig.program(0, async move |a| {
        let requests: Vec<_> = lengths.iter().map(|&len| a.request(&a.alloc(&pattern(len, 2)), 5)).collect();
        a.start().await;
        for request in &requests {
            a.put(request).await.unwrap();
        }
    });
    rig.program(1, async move |b| {
        let memory = b.alloc(&vec![0; 1 << 20]);
        b.append(entry(&memory, 5)).await.unwrap();
        b.start().await;
        for &len in lengths {
            assert_eq!(b.event(EventKind::Put).await.rlength, len as u64);
            note.borrow_mut().push(b.sim.now().since(START).ps());
        }
    });
    rig.run();
    times.take()
}

#[test]
fn a_message_starts_after_the_gap_and_after_the_bytes_before_it() {
    // Bus 250, link 0.16 + 33.4, deposit 0.125 + 250. The next message follows after the gap of 6.7.
    assert_eq!(arrivals(&[8, 8, 8]), [533_685, 540_385, 547_085]);
    // 335 bytes take as long as the gap. One more byte takes longer than the gap.
    let difference = |len: &'static [usize]| {
        let times = arrivals(len);
        times[1] - times[0]
    };
    assert_eq!(difference(&[0, 0]), 6_700);
    assert_eq!(difference(&[334, 334]), 6_700);
    assert_eq!(difference(&[335, 335]), 6_700);
    assert_eq!(difference(&[336, 336]), 6_720);
    assert_eq!(difference(&[4096, 4096]), 81_920);
    // A message has three packets. There is no gap between the packets of one message.
    assert_eq!(difference(&[12_288, 12_288]), 3 * 81_920);
}

#[test]
fn the_bus_takes_one_message_after_another() {
    // The second message's 8 bytes cross the bus behind 4096 bytes: 63.898 + 250. The link is busy until 250 + 81.92.
    let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns"]);
    rig.program(0, async |a| {
        let (long, short) = (a.alloc(&[1; 4096]), a.alloc(&[2; 8]));
        let (long, short) = (a.request(&long, 5), a.request(&short, 6));
        a.start().await;
        a.put(&long).await.unwrap();
        a.put(&short).await.unwrap();
    });
    rig.program(1, async |b| {
        let (long, short) = (b.alloc(&[0; 4096]), b.alloc(&[0; 8]));
        b.append(entry(&long, 5)).await.unwrap();
        b.append(counted(&short, 6, b.ct)).await.unwrap();
        b.start().await;
        b.count(b.ct, 1).await.unwrap();
        assert_eq!(
            b.parts(),
            [
                ("bus", 250_000),
                ("bus, queued", 63_898),
                ("send, queued", 331_920 - 313_898),
                ("link", 33_560),
                // The first packet arrives at 365.32, and its match ends at 395.32. The second packet arrives at
                // 365.48.
                ("match", 30_000),
                ("match, queued", 29_840),
                // The first packet occupies the bus for 63.898, until 459.218. The second packet's match ends at
                // 425.32.
                ("deposit", 250_125),
                ("deposit, queued", 33_898),
            ]
        );
    });
    rig.run();
}

#[test]
fn a_handlers_put_waits_for_the_hosts_message() {
    let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns"]);
    // Rank 1 sends 64 KiB. Its reply to rank 0's 8 bytes waits behind the 64 KiB.
    rig.program(1, async |b| {
        let (long, memory) = (b.alloc(&pattern(65_536, 4)), b.alloc(&[0; 8]));
        b.append_with(entry(&memory, 5), &payload(echo()), &put(9, 0, 0, false)).await.unwrap();
        let request = b.request(&long, 7);
        b.start().await;
        b.put(&request).await.unwrap();
    });
    rig.program(0, async |a| {
        let (out, back, long) = (a.alloc(&pattern(8, 5)), a.alloc(&[0; 8]), a.alloc(&[0; 65_536]));
        a.append(counted(&back, 9, a.ct)).await.unwrap();
        a.append(entry(&long, 7)).await.unwrap();
        let request = a.request(&out, 5);
        a.start().await;
        a.put(&request).await.unwrap();
        a.count(a.ct, 1).await.unwrap();
        assert_eq!(a.sim.now(), after(1_910_143));
        assert_eq!(
            a.parts(),
            [
                ("bus", 250_000),
                // The reply waits from 250 + 33.56 + 30 + 2 until 250 + 1310.72.
                ("send, queued", 1_560_720 - 315_560),
                ("link", 2 * 33_560),
                ("match", 60_000),
                // The long message's last packet is served from 1594.12 on. The reply arrives at 1594.28.
                ("match, queued", 1_840),
                ("handler", 2_000),
                ("deposit", 250_125),
                ("deposit, queued", 1_660_018 - 1_626_120),
            ]
        );
        assert_eq!(a.read(&long), pattern(65_536, 4), "its last packet was deposited before");
    });
    rig.run();
}

#[test]
fn a_triggered_put_waits_for_the_hosts_message() {
    let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns"]);
    rig.program(0, async |a| {
        let (long, short) = (a.alloc(&[1; 65_536]), a.alloc(&[2; 8]));
        let (long, short) = (a.request(&long, 7), a.request(&short, 5));
        a.start().await;
        a.triggered_put(short, a.ct, 0).await.unwrap();
        a.put(&long).await.unwrap();
    });
    rig.program(1, async |b| {
        let (long, short) = (b.alloc(&[0; 65_536]), b.alloc(&[0; 8]));
        b.append(entry(&long, 7)).await.unwrap();
        b.append(counted(&short, 5, b.ct)).await.unwrap();
        b.start().await;
        b.count(b.ct, 1).await.unwrap();
        assert_eq!(b.sim.now(), after(1_910_143));
        // The command crosses the bus, and the card fetches behind the long message's bytes. The last of these bytes
        // leaves the bus at 1022.368.
        assert_eq!(
            b.parts(),
            [
                ("bus", 250_000),
                ("fetch", 500_000),
                ("fetch, queued", 1_022_368 - 500_000),
                ("send, queued", 1_560_720 - 1_272_368),
                ("link", 33_560),
                ("match", 30_000),
                ("match, queued", 1_840),
                ("deposit", 250_125),
                ("deposit, queued", 33_898),
            ]
        );
    });
    rig.run();
}

#[test]
fn a_message_of_many_packets_waits_only_for_itself() {
    for len in [4096, 4097, 65_536, 1 << 20] {
        let mut rig = Rig::new(&[]);
        rig.program(0, async move |a| {
            let request = a.request(&a.alloc(&pattern(len, 6)), 5);
            a.start().await;
            a.put(&request).await.unwrap();
        });
        rig.program(1, async move |b| {
            let memory = b.alloc(&vec![0; len]);
            b.append(entry(&memory, 5)).await.unwrap();
            b.start().await;
            b.event(EventKind::Put).await;
            let parts = b.parts();
            assert!(parts.iter().all(|(stage, _)| !stage.contains("queued")), "{len} B: {parts:?}");
            assert_eq!(b.path.get().origin(), START);
            assert_eq!(b.read(&memory), pattern(len, 6));
        });
        rig.run();
    }
}

#[test]
fn an_append_takes_two_crossings() {
    let mut rig = Rig::new(&["match.command=3 ns"]);
    rig.program(0, async |a| {
        let memory = a.alloc(&[0; 8]);
        a.start().await;
        a.append(entry(&memory, 5)).await.unwrap();
        assert_eq!(a.sim.now(), after(65_000 + 250_000 + 3_000 + 250_000 + 65_000));
        assert_eq!(
            a.parts(),
            [("post", 65_000), ("bus", 250_000), ("match", 3_000), ("deposit", 250_000), ("notice", 65_000)]
        );
    });
    rig.run();
}

#[test]
fn matching_serves_commands_and_packets_in_one_queue() {
    // Rank 1 posts an append at `posted`. Rank 0's packet arrives at 283.56, and its service ends at 313.56 or later.
    for (posted, matched, noticed) in
        [(0, true, 380_000 + 250_125), (33_560, true, 413_560 + 250_125), (33_561, false, 0)]
    {
        let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns", "match.command=100 ns"]);
        rig.program(0, async |a| {
            let request = a.request(&a.alloc(&[0; 8]), 5);
            a.start().await;
            a.put(&request).await.unwrap();
        });
        rig.program(1, async move |b| {
            let memory = b.alloc(&[0; 8]);
            b.until(after(posted)).await;
            let card = b.card.clone();
            let mut path = b.path.get();
            let me = entry(&memory, 5);
            let appending =
                card.me_append(&b.cpus, &mut path, PT, me, nicety_portals::List::Priority).await.unwrap();
            card.appended(&b.cpus, &mut path, appending).await.unwrap();
            if matched {
                b.event(EventKind::Put).await;
                assert_eq!(b.sim.now(), after(noticed), "posted at {posted}");
                let queued = b.path.get().total(nicety_nic_processors::stages::MATCH_QUEUED);
                assert_eq!(queued.ps(), noticed - 250_125 - 30_000 - 283_560);
            }
        });
        rig.run();
        let statistics = rig.nodes[1].card.statistics();
        assert_eq!(
            (statistics.matched, statistics.dropped_total()),
            (u64::from(matched), u64::from(!matched))
        );
    }
}

#[test]
fn a_small_packet_buffer_holds_the_sender_back() {
    let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns", "buffer.packets=1"]);
    rig.program(0, async |a| {
        let request = a.request(&a.alloc(&pattern(12_288, 8)), 5);
        a.start().await;
        a.put(&request).await.unwrap();
    });
    rig.program(1, async |b| {
        let memory = b.alloc(&[0; 12_288]);
        b.append(entry(&memory, 5)).await.unwrap();
        b.start().await;
        b.event(EventKind::Put).await;
        assert_eq!(b.read(&memory), pattern(12_288, 8));
        // A packet takes 81.92 + 33.4 on the link, and 30 or 2 to match. Its slot is free after 63.898, and the credit
        // takes 33.4.
        let first = 250_000 + 115_320 + 30_000 + 63_898 + 33_400;
        let second = first + 115_320 + 2_000 + 63_898 + 33_400;
        assert_eq!(b.sim.now(), after(second + 115_320 + 2_000 + 63_898 + 250_000));
        b.parts();
        assert_eq!(b.path.get().origin(), START);
    });
    rig.run();
}

#[test]
fn a_full_staging_queue_blocks_the_handler() {
    // The handler puts its packet three times. The second put waits 6.7 for the send engine. The third put waits for
    // the second put's place.
    let three = Code::new()
        .with(&{
            use nicety_hpu::asm::*;
            [lw(S1, 4, A0), lw(S2, 0, A0), mv(A2, A1), mv(A1, S1), mv(A0, S2)]
        })
        .command(number::PUT_FROM_DEVICE)
        .with(&[nicety_hpu::asm::mv(10, 18)])
        .command(number::PUT_FROM_DEVICE)
        .with(&[nicety_hpu::asm::mv(10, 18)])
        .command(number::PUT_FROM_DEVICE)
        .returns(0);
    for (queue, cycles) in [(1, 26), (2, 13)] {
        let mut rig = Rig::new(&[
            &format!("send.queue={queue}"),
            "host.post=0 ns",
            "host.notice=0 ns",
            "match.first=0 ns",
        ]);
        rig.program(0, async |a| {
            let (out, back) = (a.alloc(&pattern(8, 5)), a.alloc(&[0; 8]));
            a.append(entry(&back, 9)).await.unwrap();
            let request = a.request(&out, 5);
            a.start().await;
            a.put(&request).await.unwrap();
            // The handler starts at 283.56. It issues the first put at cycle 6.
            let first = 283_560 + 2_400 + 33_560 + 250_125;
            for k in 0..3 {
                a.event(EventKind::Put).await;
                assert_eq!(a.sim.now(), after(first + 6_700 * k));
            }
        });
        let program = payload(three.clone());
        rig.program(1, async move |b| {
            b.append_with(entry(&b.alloc(&[0; 8]), 5), &program, &put(9, 0, 0, false)).await.unwrap();
        });
        rig.run();
        // The puts enter the queue at 2.4, 3.2 and 4.0 after the handler's start. With one place, the third put is
        // blocked until the second put starts at 9.1, in cycle 23.
        assert_eq!(rig.nodes[1].card.processors().handler_statistics().cycles, cycles, "queue {queue}");
    }
}

#[test]
fn a_send_event_comes_when_the_last_byte_has_been_handed_to_the_link() {
    for (len, handed) in [(8, 250_160), (65_536, 250_000 + 1_310_720)] {
        let mut rig = Rig::new(&["host.post=0 ns", "host.notice=0 ns"]);
        rig.program(0, async move |a| {
            let out = a.alloc(&pattern(len, 1));
            let md = Md { start: out.address(), length: out.len(), eq: Some(a.eq), ..Md::default() };
            let md = a.card.md_bind(md).unwrap();
            a.start().await;
            a.put(&PutRequest { user_ptr: 42, ..PutRequest::new(md, len as u64, NodeId(1), PT, 5) })
                .await
                .unwrap();
            let event = a.event(EventKind::Send).await;
            assert_eq!((event.user_ptr, event.mlength), (42, len as u64));
            assert_eq!(a.sim.now(), after(handed + 250_000));
            assert!(a.parts().iter().all(|(stage, _)| !stage.contains("queued")));
            a.card.md_release(md).unwrap();
        });
        rig.run();
    }
}

#[test]
fn an_operation_ends_when_its_last_byte_has_been_handed_to_the_link() {
    let mut rig = Rig::new(&["host.post=0 ns"]);
    rig.program(0, async |a| {
        let request = a.request(&a.alloc(&[1; 4096]), 5);
        a.start().await;
        a.put(&request).await.unwrap();
        // The message is in flight from 250 until 331.92. Until then its descriptor is in use.
        a.until(after(331_919)).await;
        a.card.md_release(request.md).unwrap_err();
        a.until(after(331_921)).await;
        a.card.md_release(request.md).unwrap();
    });
    rig.run();
}

#[test]
fn posting_and_noticing_wait_for_a_cpu() {
    let mut rig = Rig::new(&["host.cores=1"]);
    let node = rig.nodes[0].clone();
    for k in 0..2 {
        let node =
            Node { path: Rc::new(PathCell::new(nicety_types::Path::from(Time::ZERO))), ..node.clone() };
        rig.world.sim(NodeId(0)).spawn_program(format!("program {k}"), async move {
            let request = node.request(&node.alloc(&[0; 8]), 5);
            node.start().await;
            node.put(&request).await.unwrap();
            assert_eq!(node.sim.now(), after(65_000 * (k + 1)));
            assert_eq!(node.path.get().total(nicety_types::Stage::CPU_QUEUED).ps(), 65_000 * k);
        });
    }
    rig.run();
    assert_eq!(rig.nodes[1].card.statistics().dropped_total(), 2, "nothing was appended there");
}
