//! Goodput where frames are lost, against the square-root law of Reno.

use crate::net::*;
use nicety_stack::*;

/// Bytes a second over so many connections at 10 Gb/s with 200 us round trips, and the sender's counters.
fn goodput(lost: u32, connections: u16, loss_probe: bool, time_us: u64) -> (f64, Counters) {
    let with = |n| StackSpec { loss_probe, min_rto: us(200_000), delayed_ack: Some(us(40_000)), ..spec(n) };
    let mut net = Net::of([with(1), with(2)]);
    net.keep_arrivals = false;
    net.delay = us(100);
    net.gap = 800;
    let pairs: Vec<_> = (0..connections).map(|n| net.connected(100 + n)).collect();
    net.run(us(100_000));
    net.faults.lost = lost;
    let (until, chunk) = (net.now + us(time_us), vec![7; 1 << 16]);
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
    (got as f64 / (until.since(start).ns() * 1e-9), net.ends[0].counters().clone())
}

#[test]
fn losses_cost_what_the_square_root_law_says_and_no_timeouts() {
    // Mathis et al. 1997, without delayed acknowledgements' factor: MSS / RTT * sqrt(3 / 2p) for each connection; at 3 %
    // that is 7 segments a round trip of 200 us, 51.6 MB/s.
    let law = 1460.0 / 200e-6 * (1.5f64 / 0.03).sqrt();
    let (with, _) = goodput(30_000, 8, true, 200_000);
    let (without, _) = goodput(30_000, 8, false, 200_000);
    assert!(with > 0.2 * 8.0 * law, "{with} of {}", 8.0 * law);
    assert!(with > 5.0 * without, "{with} against {without} with the timeout alone");
}
