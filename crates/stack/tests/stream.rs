//! Tests the transfer of bytes: segments, windows, Nagle's algorithm, many connections.

use crate::net::*;
use nicety_stack::*;

const PSH: u8 = 8;
const ACK: u8 = 16;

#[test]
fn segments_are_as_long_as_the_mtu_allows() {
    for (timestamps, mtu, to, size) in [
        (false, 1500, at(2, 80), 1460),
        (true, 1500, at(2, 80), 1448),
        (false, 9000, at(2, 80), 8960),
        (false, 1500, at6(2, 80), 1440),
        (true, 9000, at6(2, 80), 8928),
        (false, 1280, at6(2, 80), 1220),
    ] {
        let with = |n| StackSpec { timestamps, mtu, ..spec(n) };
        let mut net = Net::of([with(1), with(2)]);
        let (a, b) = net.connected_with(80, to, &plain(), &plain());
        net.warm(a, b);
        net.log = Some(Vec::new());
        net.transfer((0, a), (1, b), &pattern(1, 10 * size), us(1_000_000));
        let sizes: Vec<_> = net.segments().iter().filter(|s| s.2 > 0).map(|s| s.2).collect();
        assert_eq!(sizes, [size; 10], "mtu {mtu}, to {to}");
        let longest = net.log.as_ref().unwrap().iter().map(|(_, frame)| frame.len()).max();
        assert_eq!(longest, Some(mtu + 14));
    }
}

#[test]
fn the_shorter_mtu_of_two_counts() {
    let mut net =
        Net::of([StackSpec { mtu: 9000, ..spec(1) }, StackSpec { ipv6: None, mtu: 576, ..spec(2) }]);
    let (a, b) = net.connected(80);
    net.log = Some(Vec::new());
    net.transfer((0, a), (1, b), &pattern(1, 100_000), us(1_000_000));
    assert_eq!(net.segments().iter().map(|s| s.2).max(), Some(536));
}

#[test]
fn the_smallest_mtu_carries_a_stream() {
    let with = |n| StackSpec { ipv6: None, mtu: 68, timestamps: true, ..spec(n) };
    let mut net = Net::of([with(1), with(2)]);
    let (a, b) = net.connected(80);
    net.transfer((0, a), (1, b), &pattern(1, 1000), us(1_000_000));
}

#[test]
fn a_closed_window_stops_the_sender_and_opens_again() {
    let mut net = Net::pair();
    let small = Options { receive_buffer: Some(4380), ..plain() };
    let (a, b) = net.connected_with(80, at(2, 80), &plain(), &small);
    assert_eq!(net.send(0, a, &pattern(1, 10_000)), Ok(10_000));
    net.run(us(100_000));
    assert_eq!(net.ends[1].readable(b), Ok(4380));
    assert_eq!(net.ends[0].unacknowledged(a), Ok(5620));
    net.log = Some(Vec::new());
    // The sender probes the window after 200 ms, 400 ms and so on. Each probe has one byte, which the receiver does not
    // accept.
    net.run(us(1_000_000));
    let probes = net.segments().iter().filter(|s| s.0 == 0 && s.2 == 1).count();
    assert!((2..=3).contains(&probes), "{probes} probes");
    assert_eq!(net.ends[1].readable(b), Ok(4380));
    assert!(net.ends[1].counters().drops(Drop::BufferFull) >= 2);
    net.log = Some(Vec::new());
    assert_eq!(net.recv(1, b).unwrap(), pattern(1, 10_000)[..4380]);
    net.run(us(1000));
    let (from, update, payload) = net.segments()[0];
    assert_eq!((from, update.flags, update.window, payload), (1, ACK, 4380, 0), "the window's update");
    net.run(us(100_000));
    assert!(net.recv(1, b).unwrap() == pattern(1, 10_000)[4380..8760]);
    net.run(us(100_000));
    assert!(net.recv(1, b).unwrap() == pattern(1, 10_000)[8760..]);
    assert_eq!(net.ends[0].counters().retransmissions, 0);
}

#[test]
fn a_lost_window_update_does_not_hang() {
    let mut net = Net::pair();
    let small = Options { receive_buffer: Some(4380), ..plain() };
    let (a, b) = net.connected_with(80, at(2, 80), &plain(), &small);
    net.send(0, a, &pattern(1, 8760)).unwrap();
    net.run(us(50_000));
    net.filter = Some(Box::new(|from, _| from == 1));
    assert_eq!(net.recv(1, b).unwrap().len(), 4380);
    net.run(us(1000));
    net.filter = None;
    net.run(us(2_000_000));
    assert_eq!(net.recv(1, b).unwrap(), pattern(1, 8760)[4380..]);
}

#[test]
fn nagle_holds_small_segments_back_unless_told_not_to() {
    for nodelay in [false, true] {
        let mut net = Net::pair();
        let (a, b) = net.connected(80);
        let now = net.now;
        net.ends[0].set_nodelay(now, a, nodelay).unwrap();
        net.log = Some(Vec::new());
        for byte in b"abc" {
            net.send(0, a, &[*byte]).unwrap();
            net.run(us(1));
        }
        let sizes: Vec<_> = net.segments().iter().filter(|s| s.0 == 0).map(|s| s.2).collect();
        if nodelay {
            assert_eq!(sizes, [1, 1, 1]);
        } else {
            assert_eq!(sizes, [1], "the others wait for the acknowledgement, or for company");
        }
        net.run(us(100_000));
        assert_eq!(net.recv(1, b), Ok(b"abc".to_vec()));
        let sent = net.segments().iter().filter(|s| s.2 > 0).map(|s| (s.1.flags, s.2)).collect::<Vec<_>>();
        assert!(sent.iter().all(|s| s.0 == PSH | ACK) && (nodelay || sent[1].1 == 2));
    }
}

#[test]
fn both_ways_at_once_over_many_connections() {
    let mut net = Net::pair();
    let pairs: Vec<_> = (0..20)
        .map(|n| {
            let to = if n % 2 == 0 { at(2, 100 + n) } else { at6(2, 100 + n) };
            net.connected_with(100 + n, to, &plain(), &plain())
        })
        .collect();
    for (n, &(a, b)) in pairs.iter().enumerate() {
        net.send(0, a, &pattern(n as u64, 30_000)).unwrap();
        net.send(1, b, &pattern(n as u64 + 50, 30_000)).unwrap();
    }
    net.run(us(100_000));
    for (n, &(a, b)) in pairs.iter().enumerate() {
        assert!(net.recv(1, b).unwrap() == pattern(n as u64, 30_000));
        assert!(net.recv(0, a).unwrap() == pattern(n as u64 + 50, 30_000));
    }
    assert_eq!(net.ends[0].counters().retransmissions + net.ends[1].counters().retransmissions, 0);
}

#[test]
fn an_arrival_says_what_can_be_read_and_written() {
    let mut net = Net::pair();
    let (a, b) = net.connected(80);
    net.warm(a, b);
    net.send(0, a, &[7; 3000]).unwrap();
    net.run(us(100_000));
    let of = |end: usize| net.arrivals.iter().filter(move |(to, _)| *to == end).map(|(_, arrival)| *arrival);
    assert!(of(1).all(|arrival| arrival.source == Source::Connection(b) && arrival.dropped.is_none()));
    assert_eq!(of(1).map(|arrival| arrival.readable).collect::<Vec<_>>(), [1460, 1460, 80]);
    assert!(of(0).all(|arrival| arrival.source == Source::Connection(a)));
    assert_eq!(of(0).map(|arrival| arrival.acknowledged).sum::<usize>(), 3000);
}
