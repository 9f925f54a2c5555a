//! Tests offload functions of a card: segmentation, coalescing, checksums.

use crate::net::*;
use nicety_stack::*;

fn offloading(n: u8) -> StackSpec {
    StackSpec { tso: Some(65535), checksum_offload: true, ..spec(n) }
}

#[test]
fn one_packet_is_cut_into_the_frames_that_a_stack_would_send() {
    for to in [at(2, 80), at6(2, 80)] {
        let frames = |with: fn(u8) -> StackSpec| {
            let mut net = Net::of([with(1), with(2)]);
            let (a, b) = net.connected_with(80, to, &plain(), &plain());
            net.warm(a, b);
            net.log = Some(Vec::new());
            let before = net.ends[0].counters().sent;
            net.send(0, a, &pattern(1, 14_000)).unwrap();
            net.shutdown(0, a);
            net.pump();
            (net.log.take().unwrap(), net.ends[0].counters().sent - before)
        };
        let (plain, many) = frames(spec);
        let (cut, one) = frames(offloading);
        assert_eq!((many, one), (10, 1));
        assert_eq!(plain.len(), cut.len());
        for ((_, plain), (_, cut)) in plain.iter().zip(&cut) {
            let mut cut = cut.clone();
            // A card increments IPv4's identification. In frames of the stack, it is 0.
            if to.is_ipv4() {
                cut[18..20].fill(0);
                fill(&mut cut).unwrap();
            }
            assert_eq!(*plain, cut);
        }
    }
}

#[test]
fn offloading_hosts_exchange_streams() {
    for to in [at(2, 80), at6(2, 80)] {
        let mut net = Net::of([offloading(1), offloading(2)]);
        net.lro = Some(65535);
        let (a, b) = net.connected_with(80, to, &plain(), &plain());
        net.transfer((0, a), (1, b), &pattern(1, 3_000_000), us(10_000_000));
        let longest = net.arrivals.iter().map(|(_, arrival)| arrival.payload).max().unwrap();
        assert!(longest > 60_000, "joined: {longest}");
        net.transfer((1, b), (0, a), &pattern(2, 1_000_000), us(10_000_000));
    }
}

#[test]
fn only_the_next_segment_of_a_flow_is_joined() {
    let mut net = Net::pair();
    let (a, b) = net.connected(80);
    net.warm(a, b);
    net.log = Some(Vec::new());
    net.send(0, a, &pattern(1, 4000)).unwrap();
    net.shutdown(0, a);
    net.pump();
    let frames: Vec<_> = net.log.take().unwrap().into_iter().map(|(_, frame)| frame).collect();
    let join = |a: usize, b: usize, most| {
        let mut joined = frames[a].clone();
        coalesce(&mut joined, &frames[b], most).then_some(joined)
    };
    let joined = join(0, 1, 65535).unwrap();
    assert_eq!(joined.len(), frames[0].len() + 1460);
    assert_eq!(join(0, 1, 2900), None, "too long");
    assert_eq!(join(0, 2, 65535), None, "a gap");
    assert_eq!(join(1, 0, 65535), None, "backwards");
    assert_eq!(join(0, 0, 65535), None, "a repetition");
    let mut all = joined;
    let mut last = frames[2].clone();
    assert!(!coalesce(&mut all, &last, 65535), "a FIN");
    last[47] &= !1;
    assert!(coalesce(&mut all, &last, 65535));
    let now = net.now;
    let arrival = net.ends[1].receive(now, &all, ChecksumStatus::Good);
    assert_eq!((arrival.payload, arrival.readable), (4000, 4000));
    assert_eq!(net.recv(1, b), Ok(pattern(1, 4000)));
    assert!(!coalesce(&mut all, &frames[2], 65535), "PSH ends what is joined");
    assert!(!coalesce(&mut vec![0; 3], &[1, 2, 3], 65535));
}
