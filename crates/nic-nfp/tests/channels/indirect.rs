//! Tests indirect messages.

use super::script::Step;
use super::{Host, from};
use nicety_channels::Failure;
use nicety_nic_nfp::{ChannelError, MemoryKind, map, stages};
use nicety_types::Duration;
use std::cell::Cell;
use std::rc::Rc;

#[test]
fn pages_go_there_and_back() {
    for size in [1u32, 56, 4096, 4097, 24_576, 24_577, 100_000] {
        let mut host = Host::new(&[]);
        host.process(13, "channels_echo_ind", &[7, size, 2, map::CTM + 64]);
        let memory = host.memory.clone();
        host.thread(move |device, sim| async move {
            let mut path = from(&sim);
            let channel = device.subscribe(&mut path, 7).await.unwrap();
            let buffer = memory.allocate(2 * u64::from(size) + 8192).unwrap();
            let (from, to) = (buffer.address() + 100, buffer.address() + 8192 + u64::from(size) - 3);
            for round in 0..2u32 {
                let bytes: Vec<u8> = (0..size).map(|i| (i * 7 + i / 251 + round) as u8).collect();
                memory.write(from, &bytes).unwrap();
                device.send_indirect(&mut path, channel, from, size, None).await.unwrap();
                device.receive_indirect(&mut path, channel, to, size, None).await.unwrap();
                let back = memory.read(to, u64::from(size)).unwrap().into_buffer().unwrap();
                assert!(*back == *bytes, "{size}");
            }
            assert_eq!(path.at(), sim.now());
        });
        host.run();
        assert_eq!(host.returned(13), 0);
    }
}

/// The path of an indirect message of one page to a waiting reader, calculated by hand. It has the stages of a direct
/// message, and also the locking of pages, the question for the address, and DMA.
#[test]
fn a_path_says_where_the_time_went() {
    let mut host = Host::new(&[]);
    host.process(0, "channels_read_ind", &[7, 4096, 1, map::CTM]);
    let memory = host.memory.clone();
    host.thread(move |device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, 7).await.unwrap();
        let buffer = memory.allocate(4096).unwrap().address();
        sim.delay(Duration::from_us(50)).await;
        let mut path = from(&sim);
        device.send_indirect(&mut path, channel, buffer, 4096, None).await.unwrap();
        let parts: Vec<_> = path.stages().map(|(stage, time)| (stage.name(), time.ps())).collect();
        let wire = |bytes: u64| (bytes * 130_000).div_ceil(8 * 128);
        let cycles = |cycles: u64| (cycles * 5000).div_ceil(3);
        // A read request has 24 bytes. A page arrives in 16 completions of 256 bytes, each with 20 bytes of overhead.
        // An Ack and an UpdateFC of 8 bytes each are between them.
        let page = 16 * wire(276) + 2 * wire(8);
        let fetch = |answer: u64| wire(24) + 500_000 + answer;
        // CTM accepts 8 bytes per cycle from the first completion on, and the page arrives faster. CTM begins at a
        // whole cycle.
        let stored = path.total(stages::CARD_MEMORY).ps();
        let behind = cycles(511 + 75) - (page - wire(276));
        assert!((behind - cycles(1)..=behind).contains(&stored), "{stored} of {behind}");
        let expected = [
            ("library", 50_000),
            ("system call", 60_000),
            ("pin", 102_000),
            ("driver", 10_375_000 + 51_000 + 5_400_000),
            ("bus", wire(28) + 250_000),
            ("manager", cycles(75) + cycles(2074) + cycles(75) + cycles(75)),
            ("fetch", fetch(wire(84)) + fetch(page)),
            ("card memory", stored),
            ("deposit", wire(88) + wire(28) + 250_000),
            ("interrupt", 3_920_000),
            ("unpin", 51_000),
            ("wake", 3_800_000),
        ];
        assert_eq!(parts, expected);
    });
    host.run();
}

#[test]
fn lists_of_six_pages_follow_each_other() {
    // 13 pages need three lists. So there are three mailboxes to the card, three replies and 13 transfers.
    let mut host = Host::new(&[]);
    host.process(0, "channels_read_ind", &[7, 13 * 4096, 1, map::IMEM]);
    let memory = host.memory.clone();
    host.thread(move |device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, 7).await.unwrap();
        let buffer = memory.allocate(13 * 4096).unwrap().address();
        device.send_indirect(&mut path, channel, buffer, 13 * 4096, None).await.unwrap();
    });
    host.run();
    let counters = host.card.channel_counters();
    assert_eq!((counters.posted, counters.pushed, counters.transfers), (1 + 3, 1 + 3, 13));
    let kernel = host.card.kernel_counters();
    assert_eq!((kernel.pages_pinned, kernel.unpins, kernel.interrupts), (13, 1, 4));
}

/// The time of each further list of pages, on a single channel. The manager repeats its steps from the fetch of the
/// mailbox on. It asks for the address only at the first list.
#[test]
fn the_steps_from_the_mailbox_on_recur_for_each_list() {
    // A manager's cycles are those of a fetch, six parallel DMAs and a push.
    for process in ["channels_read_ind", "channels_write_ind"] {
        let manager = |lists: u32| {
            let mut host = Host::new(&[]);
            let bytes = lists * 6 * 4096;
            host.process(0, process, &[7, bytes, 1, map::EMEM]);
            let memory = host.memory.clone();
            let spent = Rc::new(Cell::new(Duration::ZERO));
            let theirs = spent.clone();
            host.thread(move |device, sim| async move {
                let mut path = from(&sim);
                let channel = device.subscribe(&mut path, 7).await.unwrap();
                let buffer = memory.allocate(u64::from(bytes)).unwrap().address();
                let mut path = from(&sim);
                match process {
                    "channels_read_ind" => {
                        device.send_indirect(&mut path, channel, buffer, bytes, None).await
                    }
                    _ => device.receive_indirect(&mut path, channel, buffer, bytes, None).await,
                }
                .unwrap();
                theirs.set(path.total(stages::MANAGER));
            });
            host.run();
            spent.get().ps()
        };
        let (three, four) = (manager(3), manager(4));
        let step = |cycles: u64| (cycles * 5000).div_ceil(3);
        let expected = 3 * step(75);
        assert!((four - three).abs_diff(expected) <= 4, "{process}: {} instead of {expected}", four - three);
    }
}

#[test]
fn lists_that_fail_are_sent_again() {
    let mut host = Host::seeded(&crate::spec(&["dma.errors=20 %", "driver.retries=100"]), 3);
    host.process(0, "channels_echo_ind", &[7, 100_000, 1, map::EMEM]);
    let memory = host.memory.clone();
    host.thread(move |device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, 7).await.unwrap();
        let buffer = memory.allocate(100_000).unwrap().address();
        let bytes: Vec<u8> = (0..100_000u32).map(|i| (i * 7 + i / 253) as u8).collect();
        memory.write(buffer, &bytes).unwrap();
        device.send_indirect(&mut path, channel, buffer, 100_000, None).await.unwrap();
        memory.write(buffer, &[0; 100_000]).unwrap();
        device.receive_indirect(&mut path, channel, buffer, 100_000, None).await.unwrap();
        assert!(*memory.read(buffer, 100_000).unwrap().into_buffer().unwrap() == *bytes);
    });
    host.run();
    let counters = host.card.channel_counters();
    assert!(
        counters.errors > 0 && counters.retries > 0 && counters.retries <= counters.errors,
        "{counters:?}"
    );
}

#[test]
fn a_message_is_given_up_at_both_ends() {
    let mut host = Host::new(&["dma.errors=1"]);
    host.one_script(&[
        Step::Register(7),
        Step::ReadInd(7, 50_000, 0, None),
        Step::WriteInd(7, 50_000, 0, None),
        Step::Read(7, 3, 1, None),
    ]);
    let memory = host.memory.clone();
    host.thread(move |device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, 7).await.unwrap();
        let buffer = memory.allocate(50_000).unwrap().address();
        memory.write(buffer, &[1; 50_000]).unwrap();
        let given_up = Err(ChannelError::Failed(Failure::Dma { done: 0, outstanding: 50_000 }));
        assert_eq!(device.send_indirect(&mut path, channel, buffer, 50_000, None).await, given_up);
        assert_eq!(device.receive_indirect(&mut path, channel, buffer, 50_000, None).await, given_up);
        assert_eq!(*memory.read(buffer, 4).unwrap().into_buffer().unwrap(), [1; 4]);
        // The managers are free again, so direct messages, which need no DMA, still work.
        device.send(&mut path, channel, &[1, 2, 3], None).await.unwrap();
    });
    host.run();
    assert_eq!([1, 2, 3].map(|step| host.ended(0, step).0), [-4, -4, 0]);
    let counters = host.card.channel_counters();
    assert_eq!((counters.retries, counters.errors, counters.bytes), (2 * 3, 2 * 4 * 6, 0));
    assert_eq!(host.card.processor().memory(MemoryKind::Emem, 0).peek_u32(0), Ok(0));
}

#[test]
fn any_memory_of_any_island_is_reached_but_cls() {
    let mut host = Host::new(&[]);
    for (core, base, result) in
        [(0, map::CLS, -11), (14, map::CTM, 0), (27, map::IMEM, 0), (40, map::EMEM, 0)]
    {
        host.process(core, "channels_read_ind", &[core as u32, 600, 1, base + 128]);
        let memory = host.memory.clone();
        host.thread(move |device, sim| async move {
            let mut path = from(&sim);
            let channel = device.subscribe(&mut path, core as u32).await.unwrap();
            let buffer = memory.allocate(600).unwrap().address();
            memory.write(buffer, &[core as u8; 600]).unwrap();
            let soon = Some(Duration::from_us(100));
            assert_eq!(
                device.send_indirect(&mut path, channel, buffer, 600, soon).await.is_ok(),
                result == 0
            );
        });
    }
    host.run();
    for (core, kind, result) in [
        (0, MemoryKind::Cls, -11),
        (14, MemoryKind::Ctm, 0),
        (27, MemoryKind::Imem, 0),
        (40, MemoryKind::Emem, 0),
    ] {
        assert_eq!(host.returned(core), result, "{kind:?}");
        let mut found = [0; 600];
        host.card.processor().memory(kind, core / 12).peek(128, &mut found).unwrap();
        assert_eq!(found, [if result == 0 { core as u8 } else { 0 }; 600]);
    }
}
