//! Tests the recording of messages. Each message is recorded once, and the times of its stages add up to its latency.
//! The recording does not change the times of the run.

use super::script::Step;
use super::{Host, from};
use nicety_nic_nfp::{map, stages};
use nicety_types::{Duration, Recorder, Stage, Starter, Time};

const TARGET: u32 = 7;

/// A recorded message.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) to_card: bool,
    pub(super) indirect: bool,
    pub(super) bytes: u64,
    pub(super) outcome: &'static str,
    pub(super) posted: Time,
    /// The times at which the message's mailbox arrived, the message was complete, and its receiver noticed the
    /// completion.
    came: Option<Time>,
    completed: Option<Time>,
    noticed: Option<Time>,
    /// The message's stages. Their times add up to its latency. `None` if the message was not received.
    pub(super) stages: Option<Vec<(Stage, u64)>>,
}

/// Returns the messages in the order of their posts.
pub(super) fn rows(recorder: &Recorder) -> Vec<Row> {
    let records = recorder.take();
    assert!(records.left_out.is_empty());
    assert!(records.messages.sent().all(|sent| sent.target == sent.message.source));
    let row = |sent: nicety_types::Sent| {
        let mut all = records.messages.arrived().filter(|row| row.message == sent.message);
        let (arrived, again) = (all.next(), all.next());
        assert!(again.is_none(), "it is recorded twice: {again:?}");
        let completed = arrived.as_ref().and_then(|row| row.completed.as_ref());
        let stages = completed.map(|path| {
            assert_eq!(path.origin(), sent.base.origin());
            let since = path.since(&sent.base).expect("it goes on from its sender's");
            let stages: Vec<_> = since.map(|(stage, time)| (stage, time.ps())).collect();
            let sum = stages.iter().map(|(_, time)| time).sum::<u64>();
            assert_eq!(sum, path.at().since(sent.base.at()).ps());
            stages
        });
        Row {
            to_card: sent.by == Starter::Host,
            indirect: sent.kind == "indirect",
            bytes: sent.bytes,
            outcome: arrived.as_ref().map_or("in flight", |row| row.outcome),
            posted: sent.base.at(),
            came: arrived.as_ref().and_then(|row| row.matched),
            completed: completed.map(|path| path.at()),
            noticed: arrived.as_ref().and_then(|row| row.noticed),
            stages,
        }
    };
    records.messages.sent().map(row).collect()
}

/// Returns the time of `bytes` bytes on PCI Express, generation 3 x8, in picoseconds.
const fn wire(bytes: u64) -> u64 {
    (bytes * 130_000).div_ceil(8 * 128)
}

/// A message to a waiting process. Its times are calculated by hand as in `direct.rs`. Its stages are the thread's
/// work, the doorbell, the fetch (75 cycles of 5000/3 ps) and the delivery (89 cycles). Then a signal takes 10 cycles
/// from the next cycle on.
#[test]
fn a_message_to_the_card_is_complete_when_its_process_goes_on() {
    let mut host = Host::recorded(&[]);
    host.process(0, "channels_read", &[TARGET, 56, 2]);
    host.thread(|device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, TARGET).await.unwrap();
        device.send(&mut path, channel, &[1; 56], None).await.unwrap();
        sim.delay(Duration::from_us(50)).await;
        device.send(&mut from(&sim), channel, &[2; 56], None).await.unwrap();
    });
    host.run();
    let rows = rows(&host.recorder);
    assert_eq!(rows.len(), 2);
    let row = &rows[1];
    assert_eq!((row.to_card, row.indirect, row.bytes, row.outcome), (true, false, 56, "received"));
    let posted = row.posted.ps();
    let came = posted
        + 50_000
        + 60_000
        + 5_400_000
        + (wire(28) + 250_000)
        + 125_000
        + (wire(24) + 250_000 + wire(84) + 250_000);
    let given = came + 148_334;
    let cycle = (given * 3).div_ceil(5000) + 10;
    let completed = (cycle * 5000).div_ceil(3);
    assert_eq!(row.came, Some(Time::from_ps(came)));
    assert_eq!(
        (row.completed, row.noticed),
        (Some(Time::from_ps(completed)), Some(Time::from_ps(completed)))
    );
    let expected = [
        (Stage::LIBRARY, 50_000),
        (Stage::SYSTEM_CALL, 60_000),
        (stages::DRIVER, 5_400_000),
        (Stage::BUS, wire(28) + 250_000),
        (stages::MANAGER, 125_000 + completed - came),
        (Stage::FETCH, wire(24) + 250_000 + wire(84) + 250_000),
    ];
    assert_eq!(row.stages.as_deref(), Some(&expected[..]));
}

/// A message to the host. A manager collects and pushes the message, and the interrupt follows the write of the
/// mailbox. Then the interrupt handler runs. The thread wakes up, and posts a reply before it returns.
#[test]
fn a_message_to_the_host_is_complete_when_its_thread_is_back() {
    let mut host = Host::recorded(&[]);
    host.one_script(&[Step::Register(TARGET), Step::Compute(90_000), Step::Write(TARGET, 56, 1, None)]);
    host.thread(|device, sim| async move {
        let channel = device.subscribe(&mut from(&sim), TARGET).await.unwrap();
        device.receive(&mut from(&sim), channel, 56, None).await.unwrap();
        assert!(sim.now() > Time::from_ps(150_000_000), "it came first");
    });
    host.run();
    let rows = rows(&host.recorder);
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!((row.to_card, row.indirect, row.bytes, row.outcome), (false, false, 56, "received"));
    let expected = [
        (stages::DRIVER, 5_400_000),
        (stages::MANAGER, 148_334 + 125_000),
        (Stage::DEPOSIT, wire(88) + wire(28) + 250_000),
        (Stage::INTERRUPT, 3_920_000),
        (Stage::WAKE, 3_800_000),
    ];
    assert_eq!(row.stages.as_deref(), Some(&expected[..]));
    let came = row.posted.ps() + expected[1].1 + expected[2].1 + expected[3].1;
    assert_eq!(row.came, Some(Time::from_ps(came)));
    let completed = Time::from_ps(came + 9_200_000);
    assert_eq!((row.completed, row.noticed), (Some(completed), Some(completed)));
}

/// While a message waits for its thread, its time is in the stage `receiver` until the thread is in the kernel. After
/// that, its time is in the stages of the thread.
#[test]
fn a_message_that_waits_for_its_thread_says_so() {
    let mut host = Host::recorded(&[]);
    host.one_script(&[Step::Register(TARGET), Step::Write(TARGET, 8, 1, None)]);
    host.thread(|device, sim| async move {
        let channel = device.subscribe(&mut from(&sim), TARGET).await.unwrap();
        sim.until(Time::from_ps(500_000_000)).await;
        device.receive(&mut from(&sim), channel, 8, None).await.unwrap();
    });
    host.run();
    let row = &rows(&host.recorder)[0];
    let stages = row.stages.as_ref().unwrap();
    let came = row.came.unwrap().ps();
    assert_eq!(row.completed.unwrap().ps(), 500_000_000 + 110_000 + 5_400_000);
    assert!(stages.contains(&(stages::DRIVER, 5_400_000)), "{stages:?}");
    let waited = stages.iter().find(|(stage, _)| *stage == stages::RECEIVER).unwrap().1;
    // Before that, the message waited for its channel.
    assert!(waited > 500_110_000 - came && waited < 500_110_000, "{waited}");
    assert!(!stages.iter().any(|(stage, _)| *stage == Stage::WAKE || *stage == Stage::LIBRARY), "{stages:?}");
}

/// A transfer with two lists of pages is recorded as one message, in each direction, even if its thread is late. The
/// message's stages include the costs of every list.
#[test]
fn bulk_is_one_message_whatever_its_lists() {
    const BYTES: u32 = 7 * 4096;
    for (process, late) in
        [("channels_read_ind", false), ("channels_write_ind", false), ("channels_write_ind", true)]
    {
        let mut took = Vec::new();
        for mut host in [Host::new(&[]), Host::recorded(&[])] {
            host.process(0, process, &[TARGET, BYTES, 3, map::EMEM]);
            let memory = host.memory.clone();
            host.thread(move |device, sim| async move {
                let channel = device.subscribe(&mut from(&sim), TARGET).await.unwrap();
                let buffer = memory.allocate(BYTES.into()).unwrap().address();
                for _ in 0..3 {
                    let wait = if late { 1_000 } else { 0 };
                    sim.delay(Duration::from_us(wait)).await;
                    let mut path = from(&sim);
                    match process {
                        "channels_read_ind" => {
                            device.send_indirect(&mut path, channel, buffer, BYTES, None).await
                        }
                        _ => device.receive_indirect(&mut path, channel, buffer, BYTES, None).await,
                    }
                    .unwrap();
                }
            });
            took.push(host.run());
            let rows = rows(&host.recorder);
            if took.len() == 1 {
                assert!(rows.is_empty());
                continue;
            }
            assert_eq!(rows.len(), 3, "{process}");
            for row in &rows {
                assert_eq!((row.indirect, row.bytes, row.outcome), (true, BYTES.into(), "received"));
                let stages = row.stages.as_ref().unwrap();
                let total = |stage| stages.iter().find(|(s, _)| *s == stage).map_or(0, |(_, time)| *time);
                // For each list, the thread builds and posts a mailbox.
                let lists = 2 * (5_400_000 + 51_000);
                match row.to_card {
                    true => assert_eq!(total(stages::DRIVER), 10_375_000 + lists),
                    false => assert!(total(stages::DRIVER) >= lists, "{stages:?}"),
                }
                assert!(total(stages::CARD_MEMORY) > 0 && total(Stage::FETCH) > 0, "{stages:?}");
                assert_eq!(total(stages::RECEIVER) > 900_000_000, late, "{stages:?}");
            }
        }
        assert_eq!(took[0], took[1], "recording changes nothing");
    }
}

/// Messages without a receiver have an outcome and no latency.
#[test]
fn failures_are_recorded() {
    let mut host = Host::recorded(&[]);
    host.one_script(&[
        Step::Register(TARGET),
        Step::Read(TARGET, 8, 1, None),
        Step::Write(TARGET, 8, 1, None),
        Step::Write(TARGET, 8, 1, Some(50_000)),
    ]);
    let memory = host.memory.clone();
    host.thread(move |device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, TARGET).await.unwrap();
        device.send(&mut path, channel, &[1; 4], None).await.unwrap_err();
        let buffer = memory.allocate(8).unwrap().address();
        device.receive_indirect(&mut path, channel, buffer, 8, None).await.unwrap_err();
        // The first send fails before there is a message, because its pages cannot be locked. The second send has no
        // reader.
        device.send_indirect(&mut path, channel, u64::MAX / 2, 8, None).await.unwrap_err();
        device.send(&mut path, channel, &[1; 4], Some(Duration::from_us(200))).await.unwrap_err();
    });
    host.run();
    let rows = rows(&host.recorder);
    let mut found: Vec<_> = rows.iter().map(|row| (row.to_card, row.indirect, row.outcome)).collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            (false, false, "kind mismatch"),
            (false, false, "timed out"),
            (true, false, "size mismatch"),
            (true, false, "timed out")
        ]
    );
    assert!(rows.iter().all(|row| row.completed.is_none() && row.noticed.is_none()));
}

/// A process withdraws its message while the receiving thread locks pages. The thread replies to the withdrawal, and
/// receives only the next message.
#[test]
fn a_withdrawn_message_is_not_the_one_received() {
    let mut host = Host::recorded(&["kernel.pin=1 ms"]);
    host.one_script(&[
        Step::Register(TARGET),
        Step::Compute(90_000),
        Step::WriteInd(TARGET, 4096, 0, Some(100_000)),
        Step::WriteInd(TARGET, 4096, 0, None),
    ]);
    let memory = host.memory.clone();
    host.thread(move |device, sim| async move {
        let channel = device.subscribe(&mut from(&sim), TARGET).await.unwrap();
        let buffer = memory.allocate(4096).unwrap().address();
        device.receive_indirect(&mut from(&sim), channel, buffer, 4096, None).await.unwrap();
        assert!(sim.now() > Time::from_ps(1_000_000_000), "the pages were locked");
    });
    host.run();
    let rows = rows(&host.recorder);
    let found: Vec<_> = rows.iter().map(|row| (row.outcome, row.stages.is_some())).collect();
    assert_eq!(found, [("timed out", false), ("received", true)]);
}
