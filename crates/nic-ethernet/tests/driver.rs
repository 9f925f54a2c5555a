//! Tests the work of a driver and its kernel: work once per several frames, and work per frame.

use super::support::{PLAIN_NEPTUNE, PLAIN_NIU, Rig, at, pattern};
use nicety_nic_ethernet::{Report, SocketKind};
use nicety_types::{Duration, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Returns the CPU time of a node's driver, in nanoseconds.
fn driver(report: &Report) -> u64 {
    report.groups.iter().find(|group| group.group == "driver").unwrap().busy_ps / 1000
}

/// Sends `number` datagrams of 10 bytes, one after another. Returns the reports of sender and receiver.
fn datagrams(number: u8, overrides: &[&str]) -> [Report; 2] {
    let mut rig = Rig::new(PLAIN_NEPTUNE, 2, &[&["interrupts.time=2 ms"][..], overrides].concat());
    rig.program(0, async move |user| {
        let socket = user.open(SocketKind::Datagram);
        for n in 0..number {
            user.send_to(socket, &[n; 10], at(1, 9)).await.unwrap();
        }
    });
    rig.program(1, async move |user| {
        let socket = user.open(SocketKind::Datagram);
        user.bind(socket, 9).await.unwrap();
        for n in 0..number {
            assert_eq!(user.recv_from(socket, 100).await.unwrap().0, [n; 10]);
        }
    });
    rig.run();
    [0, 1].map(|node| rig.report(node))
}

#[test]
fn a_soft_ring_is_woken_once_for_the_frames_of_an_interrupt() {
    // The soft ring's thread could finish a frame before the driver takes the next one.
    let costs = ["stack.receive=1", "stack.buffer=0", "driver.receive=20000", "stack.lines=0"];
    let [_, receiver] = datagrams(20, &costs);
    assert_eq!((receiver.handlers, receiver.card.frames_received), (1, 20));
    // One switch is to the soft ring's thread. The others are to the program's thread, when it starts and when it is
    // woken.
    assert!((2..=3).contains(&receiver.context_switches), "{receiver:?}");
}

#[test]
fn a_soft_ring_is_bound_to_the_cpu_of_the_interrupts_before_it() {
    let one = ["receive.channels=1", "stack.rings=1", "interrupts.packets=4"];
    let [_, free] = datagrams(20, &one);
    let [_, bound] = datagrams(20, &[&one[..], &["stack.bound=true"]].concat());
    // The handler wakes a bound soft ring without a call of another CPU.
    assert_eq!((free.card.frames_received, bound.card.frames_received), (20, 20));
    assert!(bound.cross_calls < free.cross_calls, "{} {}", bound.cross_calls, free.cross_calls);
}

#[test]
fn channels_interrupt_cpus_at_a_distance() {
    let spread = ["interrupts.cpus=3", "interrupts.first=50", "interrupts.step=8", "receive.channels=4"];
    let rig = Rig::new(PLAIN_NIU, 2, &[&spread[..], &["stack.rings=0"]].concat());
    let names: Vec<_> = rig.hosts[0].node.host_work().into_iter().map(|work| work.name).collect();
    // CPU 50 + 16 is CPU 2, because there are 64 CPUs. The fourth channel has the first channel's CPU.
    assert_eq!(names, ["CPU 2", "CPU 50", "CPU 58"]);
}

#[test]
fn a_channel_of_a_shared_vector_reads_more_registers() {
    let one = ["receive.channels=1", "transmit.channels=12", "driver.shared_reads=3"];
    let of = |vectors: &str| {
        driver(&datagrams(5, &[&one[..], &[&format!("interrupts.vectors={vectors}")]].concat())[1])
    };
    // A read takes 100 ns in the card, 12 ns and 14 ns on the wires, and two crossings of 400 ns.
    assert_eq!((of("1") - of("13"), of("13") - of("0")), (3 * (100 + 12 + 14 + 800), 0));
}

#[test]
fn completions_are_written_in_batches_and_at_the_timers_end() {
    let batches = |batch: u64| {
        let batch = format!("receive.batch={batch}");
        let late = ["interrupts.timer=arming", "interrupts.packets=9", "receive.channels=1", &batch];
        let mut rig = Rig::new(PLAIN_NIU, 2, &[&late[..], &["interrupts.time=2 ms"]].concat());
        rig.program(0, async move |user| {
            let socket = user.open(SocketKind::Datagram);
            for n in 0..20 {
                user.send_to(socket, &[n; 10], at(1, 9)).await.unwrap();
            }
        });
        rig.run();
        let report = rig.report(1);
        assert_eq!(report.card.frames_received, 20);
        report.handlers
    };
    // Batches of 1 interrupt at 9 and 18 frames, and at the timer's end. Batches of 8 interrupt at 16 frames, and at
    // the end with a part of a batch.
    assert_eq!((batches(1), batches(8), batches(32)), (3, 2, 1));
}

#[test]
fn a_handler_that_reads_how_many_frames_there_are_leaves_those_that_come_meanwhile() {
    // The handler's work for a frame takes longer than the arrival of the next frame.
    let base = ["interrupts.packets=4", "driver.receive=20000"];
    let [_, reads] = datagrams(20, &[&base[..], &["driver.interrupt_reads=2"]].concat());
    let [_, looks] = datagrams(20, &[&base[..], &["driver.interrupt_reads=0"]].concat());
    assert_eq!(looks.handlers, 1);
    // At least four frames have arrived meanwhile, so they interrupt at once.
    assert!((2..=4).contains(&reads.handlers), "{}", reads.handlers);
}

#[test]
fn each_frames_buffer_is_posted_by_itself_with_a_register() {
    let base = ["sockets.copy=0", "driver.interrupt_writes=2"];
    let [_, at_once] = datagrams(20, &[&base[..], &["driver.post=0"]].concat());
    let [_, singly] = datagrams(20, &[&base[..], &["driver.post=1000"]].concat());
    // The work is 1000 instructions of 7 cycles at 1.2 GHz, two lines of the ring, and a register write.
    let more = (driver(&singly) - driver(&at_once)) / 20;
    assert!((5833..6300).contains(&more), "{more} ns");
    let [_, writes] = datagrams(20, &["sockets.copy=0", "driver.interrupt_writes=12", "driver.post=0"]);
    // Each write of a register of 8 bytes has 32 bytes on PCI Express.
    let more = driver(&writes) - driver(&at_once);
    assert_eq!((more, writes.handlers), (10 * 16, 1));
}

#[test]
fn a_block_is_posted_with_the_last_of_its_frames() {
    let base = ["sockets.copy=0", "driver.interrupt_writes=2", "receive.block=8 KiB"];
    let of = |overrides: &[&str]| driver(&datagrams(20, &[&base[..], overrides].concat())[1]);
    let at_once = of(&["driver.post=0"]);
    // The same work is done for each of five blocks of four buffers, with up to 125 lines of code at 21.7 ns.
    let more = (of(&["driver.post=1000"]) - at_once) / 5;
    assert!((5833..9100).contains(&more), "{more} ns");
    // The work for each frame is 1200 instructions of 7 cycles at 1.2 GHz, with up to 150 lines of code.
    let more = (of(&["driver.post=1000", "driver.free=1200"]) - of(&["driver.post=1000"])) / 20;
    assert!((7000..10_300).contains(&more), "{more} ns");
}

#[test]
fn handler_soft_ring_and_reader_translate_a_frames_page() {
    let busy = |overrides: &[&str]| {
        let one = ["receive.channels=1", "stack.rings=1", "driver.post=80", "driver.receive=20000"];
        let mut rig = Rig::new(PLAIN_NIU, 2, &[&one[..], overrides].concat());
        rig.program(0, async move |user| {
            let socket = user.connected(1, 80).await;
            user.send(socket, &pattern(1000, 5)).await.unwrap();
            user.close(socket).await.unwrap();
        });
        rig.program(1, async move |user| {
            let listening = user.listening(80).await;
            let socket = user.accept(listening).await.unwrap();
            assert!(user.recv_all(socket, 1 << 16).await.unwrap() == pattern(1000, 5));
        });
        rig.run();
        rig.report(1).busy_ps / 1000
    };
    let tlb = ["threads.data_tlb=128", "threads.tlb_miss=100 us"];
    let (none, large) = (busy(&["receive.page=8 KiB"]), busy(&[&tlb[..], &["receive.page=4 MiB"]].concat()));
    let small = busy(&[&tlb[..], &["receive.page=2 KiB"]].concat());
    // With one page for the ring, each core that uses the page has a miss. With a page for each frame, each use on a
    // core has a miss.
    let (large, small) = ((large - none) / 100_000, (small - none) / 100_000);
    assert!((2..=3).contains(&large) && small > large, "{large} {small}");
}

#[test]
fn short_frames_share_blocks_of_small_buffers() {
    let base = ["sockets.copy=0", "driver.interrupt_writes=2", "receive.block=8 KiB"];
    let of = |overrides: &[&str]| driver(&datagrams(40, &[&base[..], overrides].concat())[1]);
    let posts = |sizes: &[&str]| {
        let of = |post| of(&[&[post], sizes].concat());
        of("driver.post=100000") - of("driver.post=1")
    };
    // The driver posts ten blocks of four frames, or one of 32. Each takes 99 999 instructions of 7 cycles at 1.2 GHz,
    // and the misses for their code.
    let (full, small) = (posts(&[]), posts(&["receive.small=256 B"]));
    let post = 99_999 * 7 * 10 / 12;
    assert!((10 * post..16 * post).contains(&full), "{full} ns");
    assert!((post..2 * post).contains(&small), "{small} ns");
    // Each frame of the block of 32 is copied if the first one is copied.
    let copied = |loan: &str| of(&["receive.small=256 B", "driver.post=1", "receive.entries=2", loan]);
    let (none, all) = (copied("driver.loan_small=100"), copied("driver.loan_small=50"));
    assert!(all > none, "{all} {none}");
}

#[test]
fn bytes_are_right_where_blocks_return_in_another_order() {
    let sizes = ["receive.channels=1", "receive.entries=4", "receive.block=8 KiB", "receive.small=256 B"];
    let rig = Rig::new(PLAIN_NIU, 2, &[&sizes[..], &["driver.post=80", "interrupts.time=150 us"]].concat());
    let lengths = |n: usize| if n.is_multiple_of(7) { 40 } else { 1400 };
    rig.program(0, async move |user| {
        let socket = user.open(SocketKind::Datagram);
        for n in 0..100 {
            user.send_to(socket, &pattern(lengths(n), n as u64), at(1, 9)).await.unwrap();
            user.sim.delay(Duration::from_us(20)).await;
        }
    });
    rig.program(1, async move |user| {
        let socket = user.open(SocketKind::Datagram);
        user.bind(socket, 9).await.unwrap();
        for n in 0..100 {
            assert!(user.recv_from(socket, 2000).await.unwrap().0 == pattern(lengths(n), n as u64), "{n}");
        }
    });
    let mut rig = rig;
    rig.run();
    assert_eq!(rig.report(1).card.ring_full, 0);
}

#[test]
fn a_ring_has_room_for_its_blocks_and_for_its_completions() {
    let dropped = |overrides: &[&str]| {
        let late = ["interrupts.time=2 ms", "interrupts.packets=100", "receive.channels=1"];
        let rig = Rig::new(PLAIN_NEPTUNE, 2, &[&late[..], overrides].concat());
        rig.program(0, async move |user| {
            let socket = user.open(SocketKind::Datagram);
            for n in 0..20 {
                user.send_to(socket, &[n; 10], at(1, 9)).await.unwrap();
            }
        });
        let mut rig = rig;
        rig.run();
        rig.report(1).card.ring_full
    };
    assert_eq!(dropped(&["receive.entries=3"]), 17);
    assert_eq!(dropped(&["receive.entries=3", "receive.block=8 KiB"]), 8);
    assert_eq!(dropped(&["receive.entries=3", "receive.block=8 KiB", "receive.completions=11"]), 9);
    // Frames of 52 B fill two blocks of eight buffers, or a part of one block of 32.
    assert_eq!(dropped(&["receive.entries=2", "receive.block=8 KiB", "receive.small=1 KiB"]), 4);
    assert_eq!(dropped(&["receive.entries=2", "receive.block=8 KiB", "receive.small=256 B"]), 0);
}

#[test]
fn buffers_are_the_kernels_until_their_bytes_are_read() {
    let small = ["receive.channels=1", "receive.entries=20", "interrupts.time=10 us", "stack.rings=1"];
    let run = |overrides: &[&str]| {
        let mut rig = Rig::new(PLAIN_NIU, 2, &[&small[..], overrides].concat());
        rig.program(0, async move |user| {
            let socket = user.connected(1, 80).await;
            user.send(socket, &pattern(60_000, 5)).await.unwrap();
            user.close(socket).await.unwrap();
        });
        rig.program(1, async move |user| {
            let listening = user.listening(80).await;
            let socket = user.accept(listening).await.unwrap();
            // This delay is longer than the retransmission timeout.
            user.sim.delay(Duration::from_us(500_000)).await;
            assert!(user.recv_all(socket, 1 << 16).await.unwrap() == pattern(60_000, 5));
        });
        rig.run();
        rig.report(1)
    };
    // A window of 48 KiB has 33 frames, but the ring has 20 buffers.
    assert!(run(&["driver.loan=100"]).card.ring_full > 0);
    let copies = run(&["driver.loan=50"]);
    assert_eq!(copies.card.ring_full, 0);
    // The limit is half of three blocks of eight buffers.
    let blocks = run(&["driver.loan=50", "receive.entries=3", "receive.block=16 KiB"]);
    assert_eq!((blocks.card.ring_full, driver(&blocks) > driver(&copies) / 2), (0, true));
    // More than 20 frames are copied. Each has 24 lines, with 16 instructions of 5.8 ns per line.
    let free = run(&["driver.loan=50", "sockets.copy=0"]);
    assert!(driver(&copies) > driver(&free) + 20 * 24 * 16 * 5, "{} {}", driver(&copies), driver(&free));
}

#[test]
fn one_thread_at_a_time_sends_by_a_ring_and_the_kernels_sends_the_rest() {
    let wakes = |serial: &str| {
        let serial = format!("driver.serial={serial}");
        let one = ["transmit.channels=1", "driver.transmit=60000", "sockets.call=100"];
        let mut rig = Rig::new(PLAIN_NIU, 2, &[&one[..], &[&serial]].concat());
        // Each thread sends its datagram while the first thread's datagram is being sent.
        for n in 0..6 {
            rig.program(0, async move |user| {
                let user = user.thread(n);
                let socket = user.open(SocketKind::Datagram);
                user.send_to(socket, &[n as u8; 10], at(1, 9)).await.unwrap();
            });
        }
        rig.run();
        assert_eq!((rig.report(0).card.frames_sent, rig.report(1).card.frames_received), (6, 6));
        rig.report(0).wakes
    };
    // With a limit of 3, the first thread sends three frames, and wakes the kernel's thread for the others. With a
    // limit of 6, it wakes no thread.
    let none = wakes("0");
    assert_eq!((wakes("6") - none, wakes("3") - none), (0, 1));
}

#[test]
fn one_who_sends_reads_which_descriptors_are_free() {
    // With one ring and a limit of 3, the sender reads a register at the 4th frame and at each third frame after that.
    // The earlier frames have left by then.
    let base = ["transmit.channels=1", "sockets.call=50000"];
    let [none, _] = datagrams(10, &[&base[..], &["driver.reclaim=0"]].concat());
    let [three, _] = datagrams(10, &[&base[..], &["driver.reclaim=3"]].concat());
    let [nine, _] = datagrams(10, &[&base[..], &["driver.reclaim=9"]].concat());
    // A read takes 100 ns in the card, 12 ns and 14 ns on the wires, and two crossings of 400 ns.
    let read = 100 + 12 + 14 + 800;
    assert_eq!(driver(&three) - driver(&none), 3 * read);
    assert_eq!(driver(&nine) - driver(&none), read);
}

#[test]
fn a_reader_is_told_of_a_part_of_its_buffer_or_of_a_push_or_late() {
    /// Returns the time at which the first call returns bytes, in microseconds, and the number of these bytes.
    fn first(overrides: &[&str]) -> (u64, usize) {
        let one_by_one = ["interrupts.packets=1", "interrupts.time=0 s", "sockets.send_buffer=256 KiB"];
        let mut rig = Rig::new(PLAIN_NIU, 2, &[&one_by_one[..], overrides].concat());
        rig.program(0, async move |user| {
            let socket = user.connected(1, 80).await;
            user.send(socket, &pattern(200_000, 5)).await.unwrap();
            user.close(socket).await.unwrap();
        });
        let seen = Rc::new(RefCell::new(None));
        let store = seen.clone();
        rig.program(1, async move |user| {
            let listening = user.listening(80).await;
            let socket = user.accept(listening).await.unwrap();
            let bytes = user.recv(socket, 1 << 16).await.unwrap();
            store.replace(Some((user.sim.now().since(Time::ZERO).ps() / 1_000_000, bytes.len())));
            assert!(user.recv_all(socket, 1 << 16).await.unwrap() == pattern(200_000, 5)[bytes.len()..]);
        });
        rig.run();
        seen.take().unwrap()
    }
    let (soon, bytes) = first(&["sockets.push=0"]);
    assert_eq!(bytes, 1460);
    // With the fifth segment, the bytes reach an eighth of 48 KiB.
    let (later, bytes) = first(&["sockets.push=8"]);
    assert!(bytes >= 5 * 1460 && later > soon, "{bytes}");
    // The sender waits for an acknowledgement of its first segment. The acknowledgement waits for a second segment.
    let alone = ["sockets.push_time=20 ms", "tcp.initial_window=1", "tcp.delayed_ack=100 ms"];
    let (late, bytes) = first(&[&["sockets.push=8"][..], &alone].concat());
    assert!((20_000..21_000).contains(&(late - soon)) && bytes == 1460, "{late} us, {bytes}");
}
