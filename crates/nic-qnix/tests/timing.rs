//! Times calculated by hand, exact to the picosecond. A clock of the bus is 15 ns, a cycle of the card's processor 10
//! ns, and a poll 40 ns. Programmed I/O of 16 bytes takes 2 + 2 x 15 clocks.

use super::support::{Rig, at};
use nicety_nic_core::parts;
use nicety_nic_qnix::{TransferMethod, stages};
use nicety_types::{Duration, Path, Stage, Time};
use std::cell::Cell;
use std::rc::Rc;

const START: Time = Time::from_ps(100_000_000);

/// Returns the path of one message from the send call to the doorbell of a receive, which was posted before. Also
/// returns the time from the send call until the receiver notices the doorbell. If `pools` is true, each process has a
/// Buffer Pool that contains the buffer.
fn message(bytes: u64, how: TransferMethod, overrides: &[&str], pools: bool) -> (Path, Duration) {
    let mut rig = Rig::new(2, overrides);
    let result = Rc::new(Cell::new(None));
    let sender = async move |user: super::support::User| {
        user.open().await.unwrap();
        let buffer = match pools {
            true => (user.pool(1 << 20).await.unwrap().address(), bytes),
            false => user.room(bytes),
        };
        user.sim.until(START).await;
        user.restart();
        let send = user.send(buffer, at(1, 0), 7, how).await.unwrap();
        user.wait(send).await.unwrap();
    };
    rig.process(0, 0, sender);
    let seen = result.clone();
    rig.process(1, 0, async move |user| {
        user.open().await.unwrap();
        let buffer = match pools {
            true => (user.pool(1 << 20).await.unwrap().address(), bytes),
            false => user.room(bytes),
        };
        let receive = user.receive(buffer, None, None, how).await.unwrap();
        user.wait(receive).await.unwrap();
        seen.set(Some((user.path.get(), user.sim.now().since(START))));
    });
    rig.run();
    result.take().unwrap()
}

#[test]
fn an_empty_message_by_hand() {
    let (path, noticed) = message(0, TransferMethod::Auto, &[], false);
    // The post takes 520 ns and the bus 480 ns. The command thus arrives after 1000 ns, when a poll of the interface
    // (40 ns) begins. The command takes 200 ns, a poll of the link 40 ns and the header 500 ns. The link takes 32 B x 5
    // ns + 200 ns, so the packet arrives after 2140 ns. The polls of the receiving card are shifted by 20 ns. One other
    // poll comes before the poll of the link, so both take 20 ns + 2 x 40 ns. The receive takes 200 ns, and one
    // comparison 60 ns. A poll of the DMA controller takes 40 ns, and the programming of a channel 160 ns. The
    // channel's set-up takes 585 ns, and the bus 2 + 15 clocks (255 ns).
    let doorbell = 1000 + 40 + 200 + 40 + 500 + 360 + 100 + 260 + 40 + 160 + 585 + 255;
    assert_eq!(doorbell, 3540);
    assert_eq!(noticed, Duration::from_ns(doorbell + 150));
    assert_eq!(path.origin(), START);
    let stages: Vec<_> = path.stages().map(|(stage, time)| (stage, time.ps() / 1000)).collect();
    let expected = [
        (Stage::POST, 520),
        (Stage::BUS, 480),
        (stages::CONTROL, 200 + 500 + 200 + 60 + 160),
        (stages::CONTROL_QUEUED, 40 + 40 + 100 + 40),
        (Stage::LINK, 360),
        (Stage::DEPOSIT, 255),
        (stages::DOORBELL, 585),
        (Stage::NOTICE, 150),
    ];
    assert_eq!(stages, expected);
}

/// Returns the path's time without the polls, in nanoseconds. The time of the polls depends on the phase of the control
/// program's round.
fn without_looks(path: &Path) -> u64 {
    let time = path.at().since(path.origin()) - path.total(stages::CONTROL_QUEUED);
    assert!(path.total(stages::CONTROL_QUEUED) < Duration::from_ns(600), "{path:?}");
    time.ps() / 1000
}

#[test]
fn a_short_message_goes_by_programmed_io_and_is_deposited() {
    let (path, _) = message(1024, TransferMethod::Pio, &[], true);
    // 1024 B take 2 + 32 x 18 clocks of the bus before the command. The packet has 1056 B on the link. The deposit
    // takes 585 ns for the channel's set-up, and 2 + 8 x 30 clocks.
    let expected = 520 + 578 * 15 + 480 + 200 + 500 + (1056 * 5 + 200) + 200 + 60 + 160 + 585 + 242 * 15;
    assert_eq!(without_looks(&path), expected + 160 + 585 + 255 + 150);
    assert_eq!(path.total(Stage::BUS), Duration::from_ns(578 * 15 + 480));
    assert_eq!(path.total(parts::stages::DMA_SETUP), Duration::from_ns(585));
}

#[test]
fn a_long_message_is_fetched_by_the_card() {
    let (path, _) = message(4096, TransferMethod::Pool, &[], true);
    // There is no copy and no kernel. The message needs a post, a fetch, the link and a deposit. Fetch and deposit each
    // take 585 ns and 2 + 960 clocks.
    let fetch = 160 + 585 + 962 * 15;
    let expected = 1000 + 200 + fetch + 500 + (4128 * 5 + 200) + 200 + 60 + fetch;
    assert_eq!(without_looks(&path), expected + 160 + 585 + 255 + 150);
    assert_eq!(path.total(Stage::FETCH), Duration::from_ns(962 * 15));
}

#[test]
fn the_control_program_does_not_wait_for_a_channel() {
    // At node 1, the set-up of the only channel for the first deposit begins after about 10 us and takes 100 us. The
    // second deposit waits for the channel when node 1 posts the empty message.
    let mut rig = Rig::new(2, &["dma.channels=1", "dma.setup=100 us"]);
    let (path, waited) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(Duration::ZERO)));
    let (seen, noted) = (path.clone(), waited.clone());
    rig.process(0, 0, async move |user| {
        user.open().await.unwrap();
        let answer = user.receive(user.room(0), None, None, TransferMethod::Auto).await.unwrap();
        let buffer = user.room(512);
        user.sim.until(START).await;
        for tag in 0..2 {
            user.send(buffer, at(1, 0), tag, TransferMethod::Pio).await.unwrap();
        }
        user.wait(answer).await.unwrap();
        seen.set(Some(user.path.get()));
    });
    rig.process(1, 0, async move |user| {
        user.open().await.unwrap();
        let buffer = user.room(512);
        let mut receives = Vec::new();
        for tag in 0..2 {
            receives.push(user.receive(buffer, None, Some(tag), TransferMethod::Auto).await.unwrap());
        }
        user.sim.until(START + Duration::from_us(50)).await;
        user.restart();
        user.send((buffer.0, 0), at(0, 0), 2, TransferMethod::Auto).await.unwrap();
        for receive in receives {
            user.wait(receive).await.unwrap();
        }
        noted.set(user.path.get().total(parts::stages::DMA_QUEUED));
    });
    rig.run();
    // The second message arrives less than 10 us after the first. Its deposit waits until the channel is programmed and
    // set up for the first deposit, and has written it in 122 clocks. The second receive's doorbell waits for two
    // doorbells: of the first receive, and of the empty message's send.
    let (held, doorbell) = (160 + 100_000 + 122 * 15, 160 + 100_000 + 255);
    let by_hand = held - 10_000 + 2 * doorbell..held + 2 * doorbell;
    assert!(by_hand.contains(&(waited.get().ps() / 1000)), "{:?}", waited.get());
    // The sum of post, bus, command, header, link, receive and one comparison, channel, doorbell, bus, and notice.
    let expected = 520 + 480 + 200 + 500 + 360 + 260 + 160 + 100_000 + 255 + 150;
    // At node 0, the only channel first serves the doorbells of two sends.
    let path = path.take().unwrap();
    let queued = path.total(parts::stages::DMA_QUEUED);
    assert!((100_000..2 * 100_415).contains(&(queued.ps() / 1000)), "{queued:?}");
    assert_eq!(without_looks(&path), expected + queued.ps() / 1000);
}

#[test]
fn translation_is_a_system_call_and_descriptors() {
    let copied = message(8192, TransferMethod::Copy, &[], true).0;
    let translated = message(8192, TransferMethod::Translate, &[], false).0;
    // A copy of 8192 B at 700 MB/s takes 11 702.857 ns at each end, rounded up to a picosecond.
    assert_eq!(copied.total(Stage::COPY).ps(), 2 * 11_702_858);
    assert_eq!(copied.total(Stage::PIN), Duration::ZERO);
    // These times are only at the sender: the receiver translated its buffer before the send. The two descriptors are
    // one burst on the bus.
    assert_eq!(translated.total(Stage::SYSTEM_CALL), Duration::from_ns(300));
    assert_eq!(translated.total(Stage::PIN), Duration::from_ns(1200));
    assert_eq!(translated.total(Stage::LIBRARY), Duration::from_ns(520));
    assert_eq!(translated.total(Stage::BUS), Duration::from_ns(20 * 15 + 480));
    assert_eq!(translated.total(Stage::COPY), Duration::ZERO);
}

/// Returns the one-way bandwidth of `count` messages of `bytes` bytes in MB/s. At most 16 messages are in flight.
fn stream(bytes: u64, count: u64, how: TransferMethod, overrides: &[&str]) -> f64 {
    let mut rig = Rig::new(2, overrides);
    let end = Rc::new(Cell::new(Duration::ZERO));
    let window = 16;
    rig.process(0, 0, async move |user| {
        user.open().await.unwrap();
        let pool = user.pool(8 << 20).await.unwrap();
        user.sim.until(START).await;
        let mut sends = std::collections::VecDeque::new();
        for _ in 0..count {
            if sends.len() == window {
                user.wait(sends.pop_front().unwrap()).await.unwrap();
            }
            sends.push_back(user.send((pool.address(), bytes), at(1, 0), 0, how).await.unwrap());
        }
        for send in sends {
            user.wait(send).await.unwrap();
        }
    });
    let seen = end.clone();
    rig.process(1, 0, async move |user| {
        user.open().await.unwrap();
        let pool = user.pool(8 << 20).await.unwrap();
        let post =
            async || user.receive((pool.address(), bytes), None, None, TransferMethod::Pool).await.unwrap();
        let mut receives = std::collections::VecDeque::new();
        for _ in 0..window {
            receives.push_back(post().await);
        }
        for received in 0..count {
            user.wait(receives.pop_front().unwrap()).await.unwrap();
            if received + (window as u64) < count {
                receives.push_back(post().await);
            }
        }
        seen.set(user.sim.now().since(START));
    });
    rig.run();
    (count * bytes) as f64 / (end.get().ps() as f64 / 1e6)
}

#[test]
fn two_channels_hide_their_set_up_and_one_does_not() {
    // With a fast link, the bus is the limit: 4 KiB every 960 clocks. There is also arbitration when a transfer begins
    // on an idle bus.
    let fast = ["link.gap=10 GB/s", "memory.staging=16"];
    let two = stream(65_536, 60, TransferMethod::Pool, &fast);
    assert!((270.0..284.5).contains(&two), "{two}");
    // With one channel, each packet needs a further 585 ns and 160 ns, some polls, and doorbells: about 15.2 us for
    // 4096 B.
    let one = stream(65_536, 60, TransferMethod::Pool, &[&fast[..], &["dma.channels=1"]].concat());
    assert!((253.0..270.0).contains(&one), "{one}");
}

/// Returns the time for a packet of 4 KiB in the middle of a stream of long messages, in nanoseconds.
fn period(overrides: &[&str]) -> f64 {
    let bytes = |messages: u64| (messages << 20) as f64;
    let (few, many) = (
        stream(1 << 20, 4, TransferMethod::Pool, overrides),
        stream(1 << 20, 20, TransferMethod::Pool, overrides),
    );
    // The quotient of bytes and MB/s is in microseconds.
    1000.0 * (bytes(20) / many - bytes(4) / few) / (bytes(16) / 4096.0)
}

#[test]
fn the_programs_work_for_a_packet_adds_to_its_time_on_the_link() {
    // A packet takes 4128 B x 5 ns on the link. A poll of the link after a poll of another source, and the header
    // follow. Sometimes the control program also programs a channel or sends a doorbell in between.
    let link = 4128.0 * 5.0;
    let plain = period(&[]);
    assert!((link + 40.0 + 500.0..link + 160.0 + 500.0 + 60.0).contains(&plain), "{plain}");
    for cycles in [0, 200, 1000] {
        let setting = format!("program.header={cycles}");
        let other = period(&[&setting]);
        let expected = plain - 500.0 + 10.0 * f64::from(cycles);
        assert!((other - expected).abs() < 160.0, "header of {cycles} cycles: {other}, by hand {expected}");
    }
    // A longer poll also adds to the time: the poll that finds the link free does not overlap with the transmission.
    let slow = period(&["program.poll=100"]);
    assert!((link + 1000.0 + 500.0..link + 4000.0 + 500.0 + 60.0).contains(&slow), "{slow}");
}

#[test]
fn a_long_message_waits_for_its_own_packets_and_not_for_others() {
    let (path, _) = message(8192, TransferMethod::Pool, &[], true);
    // The fetch of the first packet takes 585 ns and 962 clocks. The second packet is fetched while the first packet
    // leaves. The second packet leaves a poll and a header after the first packet. All these times are the message's
    // own.
    assert_eq!(path.total(Stage::LINK_QUEUED), Duration::ZERO);
    assert_eq!(path.total(Stage::LINK), Duration::from_ns(2 * 4128 * 5 + 200));
    assert_eq!(path.total(stages::CONTROL), Duration::from_ns(200 + 160 + 2 * 500 + 200 + 160 + 160));
}

#[test]
fn a_long_message_waits_for_its_own_transfers_and_not_for_others() {
    // With a fast link, the second packet arrives while the first packet's bytes move. The second packet's channel
    // waits for these bytes. This wait is the message's own time: twice 962 clocks, and 17 clocks for the doorbell.
    let (path, _) = message(8192, TransferMethod::Pool, &["link.gap=10 GB/s", "dma.setup=1 us"], true);
    assert_eq!(path.total(parts::stages::DMA_QUEUED), Duration::ZERO);
    assert_eq!(path.total(Stage::DEPOSIT), Duration::from_ns((2 * 962 + 17) * 15));
}

#[test]
fn waiting_for_another_messages_packet_is_queued() {
    let mut rig = Rig::new(2, &[]);
    let path = Rc::new(Cell::new(None));
    for number in 0..2_u32 {
        let seen = path.clone();
        rig.process(1, number, async move |user| {
            let own = user.open().await.unwrap();
            let receive = user.receive(user.room(4096), None, None, TransferMethod::Translate).await.unwrap();
            user.wait(receive).await.unwrap();
            if own == 1 {
                seen.set(Some(user.path.get()));
            }
        });
        rig.process(0, number, async move |user| {
            let own = user.open().await.unwrap();
            let long = own == 0;
            let buffer = if long { user.pool(4096).await.unwrap() } else { user.process.alloc(1).unwrap() };
            user.sim.until(START + Duration::from_us(if long { 0 } else { 25 })).await;
            let (bytes, how) = if long { (4096, TransferMethod::Pool) } else { (0, TransferMethod::Auto) };
            let send = user.send((buffer.address(), bytes), at(1, own), 0, how).await.unwrap();
            user.wait(send).await.unwrap();
        });
    }
    rig.run();
    let path = path.take().unwrap();
    // The first message's command takes 1000 ns + 200 ns, and its fetch 160 ns + 585 ns + 962 x 15 ns. A header, 4128 B
    // x 5 ns on the link, and some polls follow. The second message's command is taken 26 200 ns and some polls after
    // the start.
    let waited = path.total(Stage::LINK_QUEUED).ps() / 1000;
    let expected = 1200 + 160 + 585 + 962 * 15 + 500 + 4128 * 5 - 26_200;
    assert!(waited.abs_diff(expected) < 500, "{waited}, by hand {expected}: {path:?}");
    assert_eq!(path.total(Stage::LINK), Duration::from_ns(32 * 5 + 200));
}
