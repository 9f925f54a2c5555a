//! Tests the exact times of retransmissions, delayed acknowledgements and probes.

use crate::net::*;
use nicety_stack::*;
use nicety_types::{Duration, Time};

/// Returns two connected hosts that know each other's link address. The current time is a whole millisecond.
fn pair(change: impl Fn(StackSpec) -> StackSpec) -> (Net, ConnectionId, ConnectionId) {
    let mut net = Net::of([change(spec(1)), change(spec(2))]);
    let (a, b) = net.connected(80);
    net.warm(a, b);
    net.log = Some(Vec::new());
    (net, a, b)
}

/// Returns the times at which a host sends segments during the next `time`.
fn departures(net: &mut Net, end: usize, time: Duration) -> Vec<Time> {
    let until = net.now + time;
    let (mut times, mut seen) = (Vec::new(), net.segments().len());
    net.pump();
    let segments = net.segments();
    times.extend(segments[seen..].iter().filter(|s| s.0 == end).map(|_| net.now));
    seen = segments.len();
    while net.step(until) {
        let segments = net.segments();
        times.extend(segments[seen..].iter().filter(|s| s.0 == end).map(|_| net.now));
        seen = segments.len();
    }
    times
}

#[test]
fn a_lost_segment_is_sent_again_after_the_least_timeout_doubled_each_time() {
    let (mut net, a, _) =
        pair(|spec| StackSpec { loss_probe: false, min_rto: us(5_000), delayed_ack: None, ..spec });
    net.filter = Some(Box::new(|from, _| from == 0));
    let start = net.now;
    net.send(0, a, b"lost").unwrap();
    let times = departures(&mut net, 0, us(80_000));
    let after: Vec<_> = times.iter().map(|&t| t.since(start).ps()).collect();
    assert_eq!(after, [0, 5, 15, 35, 75].map(|ms| ms * 1_000_000_000));
    assert_eq!(net.ends[0].counters().retransmissions, 4);
}

#[test]
fn an_acknowledgement_waits_for_the_second_segment_or_its_time() {
    let (mut net, a, _) = pair(|spec| StackSpec { delayed_ack: Some(us(700)), ..spec });
    net.send(0, a, b"alone").unwrap();
    let start = net.now;
    let times = departures(&mut net, 1, us(5_000));
    // The segment is on the wire for 10 us, and its acknowledgement is delayed by 700 us.
    assert_eq!(times.iter().map(|t| t.since(start)).collect::<Vec<_>>(), [us(710)]);
    let start = net.now;
    net.send(0, a, &[1; 2920]).unwrap();
    let times = departures(&mut net, 1, us(5_000));
    assert_eq!(
        times.iter().map(|t| t.since(start)).collect::<Vec<_>>(),
        [us(10)],
        "one for two full segments"
    );
}

#[test]
fn without_delay_each_segment_is_acknowledged() {
    let (mut net, a, _) = pair(|spec| StackSpec { delayed_ack: None, ..spec });
    net.send(0, a, b"alone").unwrap();
    let start = net.now;
    assert_eq!(
        departures(&mut net, 1, us(5_000)).iter().map(|t| t.since(start)).collect::<Vec<_>>(),
        [us(10)]
    );
}

#[test]
fn a_lost_tail_is_probed_for_after_two_round_trips() {
    let (mut net, a, b) = pair(|spec| StackSpec { delayed_ack: None, ..spec });
    // A round trip takes 20 us. The network loses the third segment.
    net.filter = Some(Box::new({
        let mut count = 0;
        move |from, _| {
            count += usize::from(from == 0);
            from == 0 && count == 3
        }
    }));
    net.send(0, a, &pattern(2, 4380)).unwrap();
    let start = net.now;
    let times = departures(&mut net, 0, us(100_000));
    let after: Vec<_> = times.iter().map(|t| t.since(start)).collect();
    assert_eq!(after.len(), 4, "{after:?}");
    // The probe follows two round trips after the last acknowledgement, which arrives after one round trip.
    assert!(after[3] >= us(60) && after[3] <= us(80), "{after:?}");
    assert_eq!(net.recv(1, b), Ok(pattern(2, 4380)));
    assert_eq!(net.ends[0].counters().recoveries, 1);
}

#[test]
fn two_losses_in_a_window_take_two_round_trips() {
    let (mut net, a, b) = pair(|spec| StackSpec { delayed_ack: None, ..spec });
    net.filter = Some(Box::new({
        let mut count = 0;
        move |from, _| {
            count += usize::from(from == 0);
            from == 0 && (count == 2 || count == 4)
        }
    }));
    net.send(0, a, &pattern(2, 14_600)).unwrap();
    let start = net.now;
    while net.ends[1].readable(b) != Ok(14_600) {
        assert!(net.step(start + us(10_000)));
    }
    // At most the one-way delay, a round trip for the first retransmission, and a round trip for the second.
    assert!(net.now.since(start) <= us(60), "{}", net.now.since(start));
    assert_eq!(net.ends[0].counters().retransmissions, 2);
}

#[test]
fn nothing_is_due_on_an_idle_connection() {
    let (mut net, a, b) = pair(|spec| spec);
    net.transfer((0, a), (1, b), &pattern(1, 20_000), us(100_000));
    net.run(us(1_000_000));
    assert_eq!(net.ends[0].next_timer(), None);
    assert_eq!(net.ends[1].next_timer(), None);
    net.run(us(300_000_000));
    assert!(net.events.is_empty(), "and time alone does not end it");
}
