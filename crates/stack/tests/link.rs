//! Tests that a stack accepts frames for its host, and drops frames for others.

use crate::net::*;
use nicety_stack::*;

/// Returns the frame with a SYN from host 1 to host 2, and the network to deliver it.
fn syn(change: impl Fn(StackSpec) -> StackSpec) -> (Vec<u8>, Net) {
    let mut net = Net::of([change(spec(1)), change(spec(2))]);
    net.ends[0].add_neighbour(at(2, 0).ip(), [2, 0, 0, 0, 0, 2]);
    net.ends[1].listen(80, 9, &plain()).unwrap();
    net.log = Some(Vec::new());
    net.ends[0].connect(net.now, at(2, 80), None, &plain()).unwrap();
    net.pump();
    let frame = net.log.as_ref().unwrap()[0].1.clone();
    (frame, net)
}

fn dropped(net: &mut Net, frame: &[u8]) -> Option<Drop> {
    let now = net.now;
    net.ends[1].receive(now, frame, ChecksumStatus::Unknown).dropped
}

#[test]
fn damaged_and_foreign_frames_are_dropped_and_counted() {
    let (frame, mut net) = syn(|spec| spec);
    let with = |at: usize, value: u8| {
        let mut other = frame.clone();
        other[at] = value;
        other
    };
    let refill = |mut frame: Vec<u8>| {
        fill(&mut frame).unwrap();
        frame
    };
    let cases = [
        (with(5, 9), Drop::NotForUs, "another station"),
        (refill(with(33, 9)), Drop::NotForUs, "another host"),
        (with(14, 0x55), Drop::Malformed, "version 5"),
        (with(14, 0x44), Drop::Malformed, "a header of 16 bytes"),
        (with(17, 255), Drop::Malformed, "longer than the frame"),
        (with(24, !frame[24]), Drop::Checksum, "IP's checksum"),
        (with(50, !frame[50]), Drop::Checksum, "TCP's checksum"),
        (with(40, !frame[40]), Drop::Checksum, "a sequence number"),
        (refill(with(20, 0x20)), Drop::Fragment, "the first of several"),
        (refill(with(21, 1)), Drop::Fragment, "a later one"),
        (refill(with(23, 132)), Drop::Protocol, "SCTP"),
        (with(12, 0x88), Drop::Protocol, "no IP"),
        (refill(with(37, 81)), Drop::NoPort, "a port without listener"),
        (refill(with(26, 224)), Drop::Malformed, "from a group"),
        (frame[..20].to_vec(), Drop::Malformed, "a piece"),
        (vec![], Drop::Malformed, "nothing"),
    ];
    for (n, (frame, why, what)) in cases.iter().enumerate() {
        let before = net.ends[1].counters().drops(*why);
        assert_eq!(dropped(&mut net, frame), Some(*why), "{what}");
        assert_eq!(net.ends[1].counters().drops(*why), before + 1, "{n}");
    }
    assert_eq!(net.ends[1].connections(), 0);
    assert_eq!(dropped(&mut net, &frame), None);
    assert_eq!(net.ends[1].connections(), 1);
}

#[test]
fn a_card_that_has_verified_is_believed() {
    let (mut frame, mut net) = syn(|spec| spec);
    frame[50] ^= 1;
    let now = net.now;
    assert_eq!(net.ends[1].receive(now, &frame, ChecksumStatus::Good).dropped, None);
}

#[test]
fn frames_of_another_vlan_are_dropped() {
    let (frame, _) = syn(|spec| StackSpec { vlan: Some(7), ..spec });
    assert_eq!(frame[12..18], [0x81, 0, 0, 7, 8, 0]);
    let (untagged, _) = syn(|spec| spec);
    let listens = |vlan| {
        let mut net = Net::of([spec(1), StackSpec { vlan, ..spec(2) }]);
        net.ends[1].listen(80, 9, &plain()).unwrap();
        net
    };
    assert_eq!(dropped(&mut listens(Some(7)), &frame), None);
    assert_eq!(dropped(&mut listens(Some(8)), &frame), Some(Drop::Vlan));
    assert_eq!(dropped(&mut listens(None), &frame), Some(Drop::Vlan));
    assert_eq!(dropped(&mut listens(Some(7)), &untagged), Some(Drop::Vlan));
    let mut priority = frame.clone();
    priority[14..16].copy_from_slice(&[0xe0, 0]);
    assert_eq!(dropped(&mut listens(None), &priority), None, "a tag with a priority and no network");
}

#[test]
fn a_vlan_carries_a_stream() {
    let with = |n| StackSpec { vlan: Some(4094), ..spec(n) };
    let mut net = Net::of([with(1), with(2)]);
    let (a, b) = net.connected(80);
    net.log = Some(Vec::new());
    net.transfer((0, a), (1, b), &pattern(1, 50_000), us(1_000_000));
    assert_eq!(net.log.as_ref().unwrap().iter().map(|(_, frame)| frame.len()).max(), Some(1518));
}

#[test]
fn an_echo_request_is_answered() {
    for v6 in [false, true] {
        let mut net = Net::pair();
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        if v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 12, 58, 64]);
            for n in [1, 2] {
                frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n]);
            }
            frame.extend([128, 0, 0, 0, 0, 1, 0, 2, 1, 2, 3, 4]);
        } else {
            frame.extend([8, 0, 0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            fill(&mut frame).unwrap_or_default();
            frame.extend([8, 0, 0, 0, 0, 1, 0, 2, 1, 2, 3, 4]);
        }
        let now = net.now;
        assert_eq!(net.ends[1].receive(now, &frame, ChecksumStatus::Good).dropped, None);
        net.log = Some(Vec::new());
        net.pump();
        let reply = &net.log.as_ref().unwrap()[0].1;
        assert_eq!(reply[..6], frame[6..12]);
        let (kind, from) = if v6 { (129, 54) } else { (0, 34) };
        assert_eq!((reply[from], &reply[from + 4..]), (kind, &frame[from + 4..]));
        let ip = Parsed::read(reply).unwrap().ip.unwrap();
        assert!(verify(reply, &ip));
    }
}
