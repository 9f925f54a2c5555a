//! Runs random programs at both ends of several channels. Every byte must arrive, all resources must be freed, and the
//! same seed must give the same run.

use super::recording::rows;
use super::script::Step;
use super::{Host, from};
use nicety_nic_nfp::{Device, MemoryKind};
use nicety_types::{Duration, Level, Recorder, Time};
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// An exchange between the two ends of a channel.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    to_card: bool,
    indirect: bool,
    size: u32,
    /// The delay of each end before the exchange.
    host_ns: u32,
    card_cycles: u32,
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let size = prop_oneof![1..57u32, 1..57u32, 57..30_000u32];
    (any::<bool>(), any::<bool>(), size, 0..40_000u32, 0..20_000u32).prop_map(
        |(to_card, indirect, size, host_ns, card_cycles)| Exchange {
            to_card,
            indirect: indirect || size > 56,
            size,
            host_ns,
            card_cycles,
        },
    )
}

/// Number of bytes of EMEM for each channel.
const EMEM: u32 = 32_768;

fn bytes(exchange: Exchange, channel: usize, number: usize) -> Vec<u8> {
    let first = (channel * 16 + number) as u8;
    (0..exchange.size).map(|i| first.wrapping_add(i as u8)).collect()
}

/// Runs the channels' programs, with two contexts per microengine. Returns the end of the run, and the observations of
/// each thread.
fn outcome(
    channels: &[Vec<Exchange>],
    managers: u8,
    errors: bool,
    seed: u64,
    recorder: &Recorder,
) -> (Time, String) {
    let managers = [format!("managers.read={managers}"), format!("managers.write={managers}")];
    let errors = if errors { "dma.errors=4 %" } else { "dma.errors=0" };
    let spec = crate::spec(&[&managers[0], &managers[1], errors, "driver.retries=50"]);
    let mut host = Host::with(&spec, seed, recorder);
    (0..channels.len().div_ceil(2)).for_each(|core| host.load(core, 2));
    let log = Rc::new(RefCell::new(Vec::new()));
    for (number, exchanges) in channels.iter().cloned().enumerate() {
        let target = 100 + number as u32;
        let at = number as u32 * EMEM;
        let mut steps = vec![Step::Register(target)];
        for (index, exchange) in exchanges.iter().enumerate() {
            let first = bytes(*exchange, number, index)[0];
            steps.push(Step::Compute(exchange.card_cycles));
            steps.push(match (exchange.to_card, exchange.indirect) {
                (true, false) => Step::Read(target, exchange.size, first, None),
                (false, false) => Step::Write(target, exchange.size, first, None),
                (true, true) => Step::ReadInd(target, exchange.size, at, None),
                (false, true) => Step::WriteInd(target, exchange.size, at, None),
            });
        }
        host.script(number, (number / 2, number % 2), &steps);
        let (memory, card, log) = (host.memory.clone(), host.card.clone(), log.clone());
        let buffer = memory.allocate(u64::from(EMEM) + 5000).unwrap().address() + 37 * number as u64;
        host.thread(move |device: Device, sim| async move {
            let mut path = from(&sim);
            let channel = device.subscribe(&mut path, target).await.unwrap();
            for (index, exchange) in exchanges.into_iter().enumerate() {
                sim.delay(Duration::from_ns(exchange.host_ns.into())).await;
                path = from(&sim);
                let (emem, size) = (card.processor().memory(MemoryKind::Emem, 0), exchange.size);
                let sent = bytes(exchange, number, index);
                let mut found = vec![0; size as usize];
                match (exchange.to_card, exchange.indirect) {
                    (true, false) => device.send(&mut path, channel, &sent, None).await.unwrap(),
                    (false, false) => {
                        let payload = device.receive(&mut path, channel, size, None).await.unwrap();
                        found.copy_from_slice(&payload);
                    }
                    (true, true) => {
                        memory.write(buffer, &sent).unwrap();
                        device.send_indirect(&mut path, channel, buffer, size, None).await.unwrap();
                        emem.peek(at.into(), &mut found).unwrap();
                    }
                    (false, true) => {
                        emem.poke(at.into(), &sent).unwrap();
                        device.receive_indirect(&mut path, channel, buffer, size, None).await.unwrap();
                        let landed = memory.read(buffer, size.into()).unwrap().into_buffer().unwrap();
                        found.copy_from_slice(&landed);
                    }
                }
                // The process on the card checks direct messages to the card itself.
                assert!(exchange.to_card && !exchange.indirect || found == sent, "channel {number}, {index}");
                assert_eq!(path.at(), sim.now());
                let all = path.stages().map(|(_, time)| time).sum::<Duration>();
                assert_eq!(all, path.at().since(path.origin()));
                log.borrow_mut().push((number, index, sim.now()));
            }
        });
    }
    let end = host.world.run().unwrap_or_else(|error| panic!("{error}")).end;
    for (number, exchanges) in channels.iter().enumerate() {
        for step in 0..=2 * exchanges.len() {
            assert_eq!(host.ended(number, step).0, 0, "channel {number}, step {step}");
        }
    }
    assert_eq!(host.card.channel_counters().pinned, 0);
    let seen = format!("{:?} {:?}", log.borrow(), host.card.channel_counters());
    (end, seen)
}

proptest! {
    #![proptest_config(nicety_nic_testing::cases(48))]

    #[test]
    fn every_byte_arrives(
        channels in prop::collection::vec(prop::collection::vec(exchange(), 0..8), 1..7),
        managers in 1..4u8,
        errors in any::<bool>(),
        seed in 0..1000u64,
    ) {
        let first = outcome(&channels, managers, errors, seed, &Recorder::off());
        let recorder = Recorder::new(Level::Messages, 10_000);
        prop_assert_eq!(outcome(&channels, managers, errors, seed, &recorder), first);
        // Each message is recorded once, and has stages.
        let rows = rows(&recorder);
        prop_assert!(rows.iter().all(|row| row.outcome == "received" && row.stages.is_some()), "{:?}", rows);
        let mut found: Vec<_> = rows.iter().map(|row| (row.to_card, row.indirect, row.bytes)).collect();
        let each = channels.iter().flatten().map(|e| (e.to_card, e.indirect, u64::from(e.size)));
        let mut expected: Vec<_> = each.collect();
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }

    /// With timeouts at both ends, some messages are not transferred. Both ends must agree on the transferred messages.
    #[test]
    fn both_ends_agree_on_what_passed(
        to_card in any::<bool>(),
        size in prop_oneof![Just(8u32), Just(5000u32)],
        card in prop::collection::vec((0..60_000u32, 0..80_000u32), 1..12),
        threads in prop::collection::vec((0..90_000u32, 0..130_000u32), 1..12),
    ) {
        let mut host = Host::recorded(&[]);
        let mut steps = vec![Step::Register(1)];
        for &(cycles, timeout) in &card {
            steps.push(Step::Compute(cycles));
            steps.push(match (to_card, size) {
                (true, 8) => Step::Read(1, 8, 5, Some(timeout)),
                (false, 8) => Step::Write(1, 8, 5, Some(timeout)),
                (true, _) => Step::ReadInd(1, size, 0, Some(timeout)),
                (false, _) => Step::WriteInd(1, size, 0, Some(timeout)),
            });
        }
        host.one_script(&steps);
        let passed = Rc::new(RefCell::new(0));
        let (count, memory) = (passed.clone(), host.memory.clone());
        let buffer = memory.allocate(5000).unwrap().address();
        host.thread(move |device, sim| async move {
            let mut path = from(&sim);
            let channel = device.subscribe(&mut path, 1).await.unwrap();
            for (wait, timeout) in threads {
                sim.delay(Duration::from_ns(wait.into())).await;
                let timeout = Some(Duration::from_ns(timeout.into()));
                let ended = match (to_card, size) {
                    (true, 8) => device.send(&mut path, channel, &[5, 6, 7, 8, 9, 10, 11, 12], timeout).await,
                    (false, 8) => device.receive(&mut path, channel, 8, timeout).await.map(|_| ()),
                    (true, _) => device.send_indirect(&mut path, channel, buffer, size, timeout).await,
                    (false, _) => device.receive_indirect(&mut path, channel, buffer, size, timeout).await,
                };
                match ended {
                    Ok(()) => *count.borrow_mut() += 1,
                    Err(error) => assert!(error.to_string().contains("before the deadline"), "{error}"),
                }
            }
        });
        host.run();
        let results = (1..=card.len()).map(|index| host.ended(0, 2 * index).0);
        let done = results.clone().filter(|&result| result == 0).count();
        prop_assert!(results.clone().all(|result| result == 0 || result == -3), "{:?}", results.collect::<Vec<_>>());
        prop_assert_eq!(done, *passed.borrow());
        let rows = rows(&host.recorder);
        prop_assert_eq!(rows.iter().filter(|row| row.stages.is_some()).count(), done);
        let outcome = |row: &super::recording::Row| if row.stages.is_some() { "received" } else { "timed out" };
        prop_assert!(rows.iter().all(|row| row.outcome == outcome(row)), "{:?}", rows);
    }
}
