//! Tests the figures to which the spec was calibrated: batches of 100 messages of 56 bytes.

use super::{Host, from};
use nicety_nic_nfp::map;
use nicety_types::{Duration, Time};
use std::cell::RefCell;
use std::rc::Rc;

const BATCH: u32 = 100;

/// Returns the average time of a message in a batch, in nanoseconds, after one warm-up message.
fn average(process: &'static str) -> f64 {
    let mut host = Host::new(&[]);
    host.process(0, process, &[7, 56, BATCH + 1, map::CTM]);
    let memory = host.memory.clone();
    let took = Rc::new(RefCell::new(0));
    let theirs = took.clone();
    host.thread(move |device, sim| async move {
        let mut path = from(&sim);
        let channel = device.subscribe(&mut path, 7).await.unwrap();
        let buffer = memory.allocate(56).unwrap().address();
        let mut start = Time::ZERO;
        for round in 0..=BATCH {
            match process {
                "channels_read" => device.send(&mut path, channel, &[1; 56], None).await.unwrap(),
                "channels_write" => _ = device.receive(&mut path, channel, 56, None).await.unwrap(),
                "channels_read_ind" => {
                    device.send_indirect(&mut path, channel, buffer, 56, None).await.unwrap();
                }
                _ => device.receive_indirect(&mut path, channel, buffer, 56, None).await.unwrap(),
            }
            if round == 0 {
                start = sim.now();
            }
        }
        theirs.replace(sim.now().since(start).ps());
    });
    host.run();
    let took = *took.borrow();
    took as f64 / f64::from(BATCH) / 1000.0
}

/// Checks that a figure is met within a thousandth.
fn close(found: f64, figure: f64) {
    assert!((found / figure - 1.0).abs() < 1e-3, "{found} instead of {figure}");
}

#[test]
fn whole_messages_take_what_the_spec_was_calibrated_against() {
    let direct = average("channels_read");
    close(direct, 14_660.0);
    close(average("channels_read_ind"), 2.0 * direct);
    close(average("channels_write_ind"), 1.73 * direct);
}

#[test]
fn the_peak_of_all_channels_is_what_the_interrupt_allows() {
    const CHANNELS: u32 = 16;
    let mut host = Host::new(&[]);
    for core in 0..CHANNELS {
        host.process(core as usize, "channels_read", &[core, 56, BATCH]);
        host.thread(move |device, sim| async move {
            let mut path = from(&sim);
            let channel = device.subscribe(&mut path, core).await.unwrap();
            for _ in 0..BATCH {
                device.send(&mut path, channel, &[1; 56], None).await.unwrap();
            }
        });
    }
    let end = host.run();
    // Subscriptions raise interrupts, too. The run takes the busy time and the path of one message.
    let interrupts = u64::from(CHANNELS * (BATCH + 1));
    let busy = Duration::from_ns(3920 * interrupts);
    let rest = end.since(Time::ZERO + busy);
    assert!(rest < Duration::from_us(16), "{rest} without interrupts");
    assert_eq!(host.card.kernel_counters().interrupts, interrupts);
}
