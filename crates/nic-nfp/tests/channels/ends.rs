//! Tests the synchronisation of both ends: neither end continues before the other end has called, and both ends get
//! errors.

use super::script::Step;
use super::{Host, from};
use nicety_channels::{Error, Failure, Kind};
use nicety_nic_nfp::{ChannelError, stages};
use nicety_types::{Duration, Time};
use std::cell::Cell;
use std::rc::Rc;

const TARGET: u32 = 7;
/// A long computation in cycles: 6 ms at 600 MHz.
const LONG: u32 = 3_600_000;

fn cycle_at(time: Time) -> u64 {
    time.ps() * 3 / 5000
}

#[test]
fn a_sender_waits_for_its_reader() {
    let mut host = Host::new(&[]);
    host.one_script(&[Step::Register(TARGET), Step::Compute(LONG), Step::Read(TARGET, 8, 1, None)]);
    host.thread(|device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, TARGET).await.unwrap();
        let mut path = from(&sim);
        device.send(&mut path, channel, &[1, 2, 3, 4, 5, 6, 7, 8], None).await.unwrap();
        assert!(sim.now() > Time::ZERO + Duration::from_us(6000), "{}", sim.now());
        // All of that time is in the stage `receiver`, except for the message's own time.
        let own = path.at().since(path.origin()).saturating_sub(path.total(stages::RECEIVER));
        assert!(own < Duration::from_us(16), "{own}");
        assert_eq!(path.stages().map(|(_, time)| time).sum::<Duration>(), path.at().since(path.origin()));
    });
    host.run();
    assert_eq!(host.ended(0, 2).0, 0);
}

#[test]
fn a_reader_waits_for_its_sender() {
    let mut host = Host::new(&[]);
    host.one_script(&[Step::Register(TARGET), Step::Read(TARGET, 8, 1, None)]);
    let sent = Rc::new(Cell::new(Time::ZERO));
    let begun = sent.clone();
    host.thread(|device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, TARGET).await.unwrap();
        sim.delay(Duration::from_us(500)).await;
        begun.set(sim.now());
        let mut path = from(&sim);
        device.send(&mut path, channel, &[1, 2, 3, 4, 5, 6, 7, 8], None).await.unwrap();
    });
    host.run();
    let (result, cycle) = host.ended(0, 1);
    assert!(result == 0 && u64::from(cycle) > cycle_at(sent.get()));
}

#[test]
fn a_writer_waits_for_its_receiver_and_the_other_way_round() {
    for (early, kind) in [(true, "host"), (false, "card")] {
        let mut host = Host::new(&[]);
        let wait = if early { LONG } else { 1 };
        host.one_script(&[
            Step::Register(TARGET),
            Step::Compute(wait),
            Step::Write(TARGET, 56, 9, None),
            Step::WriteInd(TARGET, 5000, 0, None),
        ]);
        let received = Rc::new(Cell::new((Time::ZERO, Time::ZERO)));
        let seen = received.clone();
        let memory = host.memory.clone();
        host.thread(move |device, sim| async move {
            let mut path = from(&sim);
            let channel = device.subscribe(&mut path, TARGET).await.unwrap();
            if !early {
                sim.delay(Duration::from_us(6000)).await;
            }
            let begun = sim.now();
            let payload = device.receive(&mut path, channel, 56, None).await.unwrap();
            assert!(payload.iter().enumerate().all(|(i, byte)| usize::from(*byte) == 9 + i));
            seen.set((begun, sim.now()));
            let buffer = memory.allocate(5000).unwrap().address();
            device.receive_indirect(&mut path, channel, buffer, 5000, None).await.unwrap();
            assert_eq!(path.stages().map(|(_, time)| time).sum::<Duration>(), sim.now().since(path.origin()));
        });
        host.run();
        let (begun, end) = received.get();
        let (result, cycle) = host.ended(0, 2);
        assert_eq!((result, host.ended(0, 3).0), (0, 0));
        // No call ends before both ends have called.
        assert!(u64::from(cycle) > cycle_at(begun), "the {kind} came last");
        assert!(cycle_at(end) > u64::from(host.ended(0, 1).1), "the {kind} came last");
    }
}

#[test]
fn a_blocked_channel_blocks_no_other() {
    // There are more senders without a reader than managers, and one sender with a reader.
    let mut host = Host::new(&["managers.read=2", "managers.write=2"]);
    host.load(0, 1);
    let steps: Vec<_> = (0..6).map(Step::Register).chain([Step::Read(5, 4, 0, None)]).collect();
    host.script(0, (0, 0), &steps);
    for target in 0..5u32 {
        host.sim.spawn({
            let (device, sim) = (host.card.open(), host.sim.clone());
            async move {
                let mut path = from(&sim);
                let channel = device.subscribe(&mut path, target).await.unwrap();
                device.send(&mut path, channel, &[1; 4], None).await.unwrap();
                panic!("target {target} has no reader");
            }
        });
    }
    host.thread(|device, sim| async move {
        sim.delay(Duration::from_us(400)).await;
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, 5).await.unwrap();
        device.send(&mut path, channel, &[0, 1, 2, 3], Some(Duration::from_us(100))).await.unwrap();
    });
    host.world.run().unwrap();
    assert_eq!(host.ended(0, 6).0, 0);
    for direction in [nicety_channels::Direction::ToCard, nicety_channels::Direction::ToHost] {
        assert_eq!(host.card.idle_managers(direction), 2);
    }
}

#[test]
fn both_ends_are_told_of_a_mismatch() {
    let mut host = Host::new(&[]);
    host.one_script(&[
        Step::Register(TARGET),
        Step::Read(TARGET, 8, 1, None),
        Step::ReadInd(TARGET, 8, 0, None),
        Step::Write(TARGET, 8, 1, None),
        Step::WriteInd(TARGET, 8, 0, None),
        Step::Write(TARGET, 8, 1, None),
        Step::Read(TARGET, 3, 1, None),
    ]);
    let memory = host.memory.clone();
    host.thread(move |device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, TARGET).await.unwrap();
        let buffer = memory.allocate(100).unwrap().address();
        let size = |sent, expected| ChannelError::Failed(Failure::SizeMismatch { sent, expected });
        let kind = |sent| ChannelError::Failed(Failure::KindMismatch { sent });
        let error = device.send(&mut path, channel, &[1; 9], None).await.unwrap_err();
        assert_eq!(error, size(9, 8));
        assert_eq!(
            error.to_string(),
            "the sender has 9 bytes and the receiver expects 8; both ends must name the same size"
        );
        assert_eq!(device.send(&mut path, channel, &[1; 8], None).await, Err(kind(Kind::Direct)));
        assert_eq!(device.receive(&mut path, channel, 7, None).await, Err(size(8, 7)));
        assert_eq!(device.receive(&mut path, channel, 8, None).await, Err(kind(Kind::Indirect)));
        let ended = device.receive_indirect(&mut path, channel, buffer, 8, None).await;
        assert_eq!(ended, Err(kind(Kind::Direct)));
        // Later messages are transferred as usual.
        device.send(&mut path, channel, &[1, 2, 3], None).await.unwrap();
    });
    host.run();
    let results: Vec<_> = (1..7).map(|step| host.ended(0, step).0).collect();
    assert_eq!(results, [-1, -2, -1, -2, -2, 0]);
}

#[test]
fn timeouts_end_calls_at_both_ends() {
    let mut host = Host::new(&[]);
    host.one_script(&[
        Step::Register(TARGET),
        Step::Read(TARGET, 8, 1, Some(50_000)),
        Step::Write(TARGET, 8, 1, Some(50_000)),
        Step::ReadInd(TARGET, 8, 0, Some(50_000)),
        Step::WriteInd(TARGET, 8, 0, Some(0)),
        Step::Compute(LONG),
        Step::Read(TARGET, 8, 1, None),
    ]);
    let memory = host.memory.clone();
    host.thread(move |device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, TARGET).await.unwrap();
        let buffer = memory.allocate(100).unwrap().address();
        sim.delay(Duration::from_us(300)).await;
        let (soon, late) = (Some(Duration::from_us(100)), Err(ChannelError::Failed(Failure::Timeout)));
        let begun = sim.now();
        assert_eq!(device.send(&mut path, channel, &[1; 8], soon).await, late);
        // At the timeout, the sender must ask the card to withdraw the message. This takes the time of a message.
        assert!(sim.now().since(begun) < Duration::from_us(130), "{}", sim.now().since(begun));
        assert_eq!(device.send_indirect(&mut path, channel, buffer, 8, soon).await, late);
        assert_eq!(device.receive(&mut path, channel, 8, soon).await.map(|_| ()), late);
        assert_eq!(device.receive_indirect(&mut path, channel, buffer, 8, soon).await, late);
        let guards = [nicety_nic_nfp::Device::direct(channel, 8)];
        assert_eq!(device.select(&mut path, &guards, soon).await.map(|_| ()), late);
        device.send(&mut path, channel, &[1, 2, 3, 4, 5, 6, 7, 8], None).await.unwrap();
        assert_eq!(path.stages().map(|(_, time)| time).sum::<Duration>(), sim.now().since(path.origin()));
    });
    host.run();
    let results: Vec<_> = [1, 2, 3, 4, 6].into_iter().map(|step| host.ended(0, step).0).collect();
    assert_eq!(results, [-3, -3, -3, -3, 0]);
}

#[test]
fn calls_that_cannot_be_are_refused() {
    let mut host = Host::new(&["limits.channels=2", "limits.targets=2", "limits.message=4096 B"]);
    host.one_script(&[
        Step::Register(TARGET),
        Step::Register(TARGET),
        Step::Register(8),
        Step::Register(9),
        Step::Read(5, 8, 0, None),
        Step::Read(TARGET, 57, 0, None),
        Step::Write(TARGET, 57, 0, None),
        Step::Write(TARGET, 0, 0, None),
        Step::ReadInd(TARGET, 4097, 0, None),
        Step::WriteInd(TARGET, 8, u32::MAX - 0x8000_0000 - 3, None),
    ]);
    host.thread(|device, sim| async move {
        let mut path = from(&sim);
        let unknown = device.subscribe(&mut path, 5).await.unwrap_err();
        assert_eq!(unknown.to_string(), "no process of the card has the ID 5");
        let channel = device.subscribe(&mut path, TARGET).await.unwrap();
        let taken = device.subscribe(&mut path, TARGET).await.unwrap_err();
        assert!(taken.to_string().contains("another channel is subscribed to target 7"), "{taken}");
        device.subscribe(&mut path, 8).await.unwrap();
        let full = device.subscribe(&mut path, 8).await.unwrap_err();
        assert!(full.to_string().contains("no channel is left of 2"), "{full}");
        let long = device.send(&mut path, channel, &[0; 57], None).await.unwrap_err();
        assert_eq!(long, ChannelError::Refused(Error::DirectTooLong(57)));
        assert!(long.to_string().contains("at most 56 bytes, not 57; use"), "{long}");
        let none = device.send(&mut path, channel, &[], None).await;
        assert_eq!(none, Err(ChannelError::Refused(Error::ZeroSize)));
        let nowhere = device.send_indirect(&mut path, channel, 64, 8, None).await;
        assert_eq!(nowhere, Err(ChannelError::Failed(Failure::Pin)));
        device.close(&mut path, channel).await.unwrap();
        let closed = device.send(&mut path, channel, &[1], None).await;
        assert_eq!(closed, Err(ChannelError::Refused(Error::Stale)));
    });
    host.run();
    let results: Vec<_> = (0..10).map(|step| host.ended(0, step).0).collect();
    assert_eq!(results, [0, -8, 0, -12, -7, -9, -9, -10, -9, -11]);
}

#[test]
fn a_target_that_never_comes_is_named() {
    let mut host = Host::new(&[]);
    host.one_script(&[Step::Register(TARGET)]);
    host.thread(|device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, TARGET).await.unwrap();
        device.send(&mut path, channel, &[1; 8], None).await.unwrap();
    });
    let error = host.world.run().unwrap_err().to_string();
    assert!(error.contains(&format!("the process at target {TARGET} to read 8 bytes")), "{error}");
}

#[test]
fn selections_take_the_first_channel_with_a_message() {
    let mut host = Host::new(&[]);
    host.process(0, "channels_alternate", &[20, 16, 4, 12]);
    host.thread(|device, sim| async move {
        let mut path = from(&sim);
        let mut channels = Vec::new();
        for target in 20..24 {
            channels.push(device.subscribe(&mut path, target).await.unwrap());
        }
        for round in 0..3u8 {
            // The process replies to one request after another. Each reply arrives on the channel of its request.
            for (number, &channel) in channels.iter().enumerate() {
                let bytes = [round * 16 + number as u8; 16];
                device.send(&mut path, channel, &bytes, None).await.unwrap();
                let guards: Vec<_> =
                    channels.iter().map(|&channel| nicety_nic_nfp::Device::direct(channel, 16)).collect();
                let selected = device.select(&mut path, &guards, None).await.unwrap();
                assert_eq!(selected.index, number);
                assert_eq!(*selected.result.unwrap().payload, bytes);
            }
        }
    });
    host.run();
    assert_eq!(host.returned(0), 0);
}

#[test]
fn a_call_that_is_not_awaited_goes_on() {
    let mut host = Host::new(&["limits.threads=2"]);
    host.one_script(&[
        Step::Register(TARGET),
        Step::Compute(LONG),
        Step::Read(TARGET, 2, 1, None),
        Step::Read(TARGET, 2, 3, None),
    ]);
    host.thread(|device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, TARGET).await.unwrap();
        let mut lost = path.clone();
        let send = device.send(&mut lost, channel, &[1, 2], None);
        let late = nicety_kernel::timeout(&sim, Duration::from_us(100), send).await;
        assert!(late.is_err());
        // The thread of the dropped call still occupies this end of the channel.
        let busy = device.send(&mut path, channel, &[3, 4], None).await.unwrap_err();
        assert!(busy.to_string().contains("already sending on this channel"), "{busy}");
        sim.delay(Duration::from_us(6500)).await;
        let mut path = from(&sim);
        device.send(&mut path, channel, &[3, 4], None).await.unwrap();
    });
    host.run();
    assert_eq!([2, 3].map(|step| host.ended(0, step).0), [0, 0]);
}

#[test]
fn threads_have_a_limit() {
    let mut host = Host::new(&["limits.threads=3"]);
    host.load(0, 1);
    let registered: Vec<_> = (0..4).map(Step::Register).collect();
    host.script(0, (0, 0), &registered);
    for target in 0..4 {
        host.thread(move |device, sim| async move {
            let mut path = from(&sim);
            let subscribed = device.subscribe(&mut path, target).await;
            match target {
                3 => assert!(subscribed.unwrap_err().to_string().contains("no thread is left of 3")),
                _ => _ = subscribed.unwrap(),
            }
        });
    }
    host.run();
}

#[test]
fn directions_of_a_channel_do_not_meet() {
    // Two threads call at one end, and two contexts at the other end.
    let mut host = Host::new(&[]);
    host.load(0, 2);
    host.script(
        0,
        (0, 0),
        &[Step::Register(TARGET), Step::Read(TARGET, 8, 1, None), Step::Read(TARGET, 8, 1, None)],
    );
    host.script(
        1,
        (0, 1),
        &[Step::Compute(60_000), Step::Write(TARGET, 8, 5, None), Step::Write(TARGET, 8, 5, None)],
    );
    let opened = Rc::new(Cell::new(None));
    let channel_of = opened.clone();
    host.thread(|device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, TARGET).await.unwrap();
        channel_of.set(Some(channel));
        for _ in 0..2 {
            device.send(&mut path, channel, &[1, 2, 3, 4, 5, 6, 7, 8], None).await.unwrap();
        }
    });
    host.thread(|device, sim| async move {
        sim.delay(Duration::from_us(20)).await;
        let mut path = from(&sim);
        let channel = opened.get().unwrap();
        for _ in 0..2 {
            let payload = device.receive(&mut path, channel, 8, None).await.unwrap();
            assert_eq!(*payload, [5, 6, 7, 8, 9, 10, 11, 12]);
        }
    });
    host.run();
    assert_eq!([(0, 1), (0, 2), (1, 1), (1, 2)].map(|(list, step)| host.ended(list, step).0), [0; 4]);
}
