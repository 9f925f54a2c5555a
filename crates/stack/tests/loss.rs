//! Compares the goodput on a network that loses frames with Reno's square-root law.

use crate::net::*;
use nicety_stack::*;

/// Returns the goodput of 8 connections as a share of the square-root law, and the sender's counters. The link has 10
/// Gb/s, and a round trip takes 200 us.
fn goodput(lost: u32, change: impl Fn(StackSpec) -> StackSpec) -> (f64, Counters) {
    let mut net = Net::of([change(spec(1)), change(spec(2))]);
    net.keep_arrivals = false;
    net.delay = us(100);
    net.gap = 800;
    let pairs: Vec<_> = (0..8).map(|n| net.connected(100 + n)).collect();
    net.run(us(100_000));
    net.faults.lost = lost;
    let (until, chunk) = (net.now + us(200_000), vec![7; 1 << 16]);
    let (mut got, start) = (0, net.now);
    loop {
        for &(a, b) in &pairs {
            if net.ends[0].writable(a).unwrap() > 1 << 16 {
                net.send(0, a, &chunk).unwrap();
            }
            if net.ends[1].readable(b).unwrap() > 0 {
                got += net.recv(1, b).unwrap().len();
            }
        }
        if !net.step(until) {
            break;
        }
    }
    // Mathis et al. 1997, without the factor of delayed acknowledgements: MSS / RTT * sqrt(3 / 2p) per connection. With
    // 3 % lost frames, that is 7 segments per round trip of 200 us, or 51.6 MB/s.
    let law = 1460.0 / 200e-6 * (1.5e6 / f64::from(lost)).sqrt();
    (got as f64 / (until.since(start).ns() * 1e-9) / 8.0 / law, net.ends[0].counters().clone())
}

#[test]
fn losses_cost_what_the_square_root_law_says_and_no_timeouts() {
    for (lost, least) in [(10_000, 0.8), (30_000, 0.5)] {
        let (of_law, counters) = goodput(lost, |spec| spec);
        assert!(of_law > least && of_law < 1.1, "{of_law} at {lost} in a million");
        assert!(counters.timeouts <= counters.recoveries / 100, "{counters:?}");
    }
}

#[test]
fn without_sack_a_window_with_many_losses_takes_longer() {
    let (with, _) = goodput(10_000, |spec| spec);
    let (without, _) = goodput(10_000, |spec| StackSpec { sack: false, ..spec });
    assert!(without > 0.3 && with > 1.2 * without, "{with} and {without}");
}

#[test]
fn cubic_loses_less_of_its_window() {
    let (of_law, _) = goodput(10_000, |spec| StackSpec { congestion: CongestionControl::Cubic, ..spec });
    assert!((1.0..1.5).contains(&of_law), "{of_law} of Reno's law");
}
