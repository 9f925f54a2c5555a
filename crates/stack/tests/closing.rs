//! Tests the closing of connections: in every order, simultaneously, of one direction only, and by resets.

use crate::net::*;
use nicety_stack::*;

const FIN: u8 = 1;
const RST: u8 = 4;
const ACK: u8 = 16;

/// Waits until TIME-WAIT (here 2 s) has ended, and checks that no stack has a connection left.
fn gone(net: &mut Net) {
    net.run(us(2_500_000));
    assert_eq!((net.ends[0].connections(), net.ends[1].connections()), (0, 0));
    assert_eq!(net.ends[0].next_timer(), None);
    assert_eq!(net.ends[1].next_timer(), None);
}

#[test]
fn one_closes_then_the_other() {
    for first in [0, 1] {
        let mut net = Net::pair();
        let ids: [ConnectionId; 2] = net.connected(80).into();
        let second = 1 - first;
        net.log = Some(Vec::new());
        net.close(first, ids[first]);
        net.run(us(100_000));
        assert!(net.took(second, Event::Finished(ids[second])));
        assert_eq!(net.recv(second, ids[second]), Ok(vec![]));
        net.close(second, ids[second]);
        net.run(us(100));
        let flags: Vec<_> = net.segments().iter().map(|(from, tcp, _)| (*from, tcp.flags)).collect();
        assert_eq!(flags, [(first, FIN | ACK), (second, ACK), (second, FIN | ACK), (first, ACK)]);
        assert_eq!(net.ends[second].connections(), 0, "whoever closes last need not wait");
        assert_eq!(net.ends[first].connections(), 1, "TIME-WAIT");
        gone(&mut net);
    }
}

#[test]
fn both_close_at_once() {
    let mut net = Net::pair();
    let (a, b) = net.connected(80);
    net.close(0, a);
    net.close(1, b);
    net.run(us(100));
    assert_eq!((net.ends[0].connections(), net.ends[1].connections()), (1, 1), "both are in TIME-WAIT");
    gone(&mut net);
}

#[test]
fn half_a_connection_goes_on() {
    let mut net = Net::pair();
    let (a, b) = net.connected(80);
    net.send(0, a, b"question").unwrap();
    net.shutdown(0, a);
    assert_eq!(net.send(0, a, b"more"), Err(Error::BrokenPipe));
    net.run(us(1000));
    assert_eq!(net.recv(1, b), Ok(b"question".to_vec()));
    assert!(net.took(1, Event::Finished(b)));
    assert_eq!(net.recv(1, b), Ok(vec![]), "the end, as often as it is read");
    assert_eq!(net.recv(1, b), Ok(vec![]));
    net.transfer((1, b), (0, a), &pattern(1, 300_000), us(1_000_000));
    net.close(1, b);
    net.run(us(1000));
    assert!(net.took(0, Event::Finished(a)));
    assert_eq!(net.recv(0, a), Ok(vec![]));
    net.close(0, a);
    gone(&mut net);
}

#[test]
fn bytes_sent_before_close_arrive() {
    let mut net = Net::pair();
    let (a, b) = net.connected(80);
    let bytes = pattern(2, 200_000);
    assert_eq!(net.send(0, a, &bytes), Ok(200_000));
    net.close(0, a);
    net.run(us(10_000));
    let mut got = net.recv(1, b).unwrap();
    while let Ok(more) = net.recv(1, b)
        && !more.is_empty()
    {
        got.extend(more);
        net.run(us(10_000));
    }
    assert!(got == bytes);
    net.close(1, b);
    gone(&mut net);
}

#[test]
fn an_abort_resets_the_peer_after_what_it_has() {
    let mut net = Net::pair();
    let (a, b) = net.connected(80);
    net.send(0, a, b"last words").unwrap();
    net.run(us(1000));
    let now = net.now;
    net.ends[0].abort(now, a).unwrap();
    net.run(us(1000));
    assert!(net.took(1, Event::Failed(b, Error::ConnectionReset)));
    assert_eq!(net.recv(1, b), Ok(b"last words".to_vec()));
    assert_eq!(net.recv(1, b), Err(Error::ConnectionReset));
    assert_eq!(net.send(1, b, b"?"), Err(Error::ConnectionReset));
    assert_eq!(net.ends[0].send(now, a, b"?"), Err(Error::BadHandle));
    net.close(1, b);
    assert_eq!((net.ends[0].connections(), net.ends[1].connections()), (0, 0));
}

#[test]
fn unread_bytes_at_close_are_a_reset() {
    let mut net = Net::pair();
    let (a, b) = net.connected(80);
    net.send(0, a, b"unread").unwrap();
    net.run(us(1000));
    net.log = Some(Vec::new());
    net.close(1, b);
    net.run(us(1000));
    assert_eq!(net.segments()[0].1.flags & RST, RST);
    assert!(net.took(0, Event::Failed(a, Error::ConnectionReset)));
    net.close(0, a);
    assert_eq!((net.ends[0].connections(), net.ends[1].connections()), (0, 0));
}

#[test]
fn bytes_to_a_closed_socket_are_answered_with_a_reset() {
    let mut net = Net::pair();
    let (a, b) = net.connected(80);
    net.close(1, b);
    net.run(us(1000));
    net.send(0, a, b"too late").unwrap();
    net.run(us(1000));
    assert!(net.took(0, Event::Failed(a, Error::ConnectionReset)));
    net.close(0, a);
    assert_eq!((net.ends[0].connections(), net.ends[1].connections()), (0, 0));
}

#[test]
fn an_end_that_never_comes_is_not_waited_for_for_ever() {
    let mut net = Net::of([StackSpec { fin_timeout: us(1_000_000), ..spec(1) }, spec(2)]);
    let (a, b) = net.connected(80);
    net.close(0, a);
    net.run(us(900_000));
    assert_eq!(net.ends[0].connections(), 1);
    net.run(us(200_000));
    assert_eq!(net.ends[0].connections(), 0);
    assert!(net.took(1, Event::Failed(b, Error::ConnectionReset)));
}

#[test]
fn a_lost_fin_is_sent_again_although_acknowledgements_repeat() {
    let mut net = Net::of([StackSpec { loss_probe: false, ..spec(1) }, spec(2)]);
    let (a, b) = net.connected(80);
    net.send(0, a, b"x").unwrap();
    net.run(us(100_000));
    net.recv(1, b).unwrap();
    let mut lost = false;
    net.filter = Some(Box::new(move |from, frame| {
        let fin = from == 0 && frame[47] & FIN != 0 && !lost;
        lost |= fin;
        fin
    }));
    net.log = Some(Vec::new());
    net.close(0, a);
    net.run(us(100));
    // The last byte arrives four more times. The receiver acknowledges each copy.
    let (_, fin, _) = net.segments()[0];
    let mut again = net.log.as_ref().unwrap()[0].1.clone();
    again.truncate(54);
    again.push(b'x');
    again[17] = 41;
    again[38..42].copy_from_slice(&fin.seq.wrapping_sub(1).to_be_bytes());
    again[47] = ACK;
    fill(&mut again).unwrap();
    for _ in 0..4 {
        let now = net.now;
        net.ends[1].receive(now, &again, ChecksumStatus::Unknown);
        net.run(us(100));
    }
    net.run(us(1_000_000));
    assert!(net.took(1, Event::Finished(b)), "the FIN came after all");
    net.close(1, b);
    gone(&mut net);
}

#[test]
fn the_same_ends_may_meet_again_while_one_waits() {
    let mut net = Net::pair();
    let listener = net.ends[1].listen(80, 4, &plain()).unwrap();
    for round in 0..4 {
        let now = net.now;
        let client = net.ends[0].connect(now, at(2, 80), Some(5000), &plain()).unwrap();
        net.run(us(700_000));
        assert!(net.took(0, Event::Connected(client)), "round {round}");
        let server = net.ends[1].accept(listener).unwrap();
        net.close(1, server);
        net.run(us(1000));
        net.close(0, client);
        net.run(us(1000));
        assert_eq!(net.ends[0].connections(), 0);
    }
}

#[test]
fn unread_bytes_outlive_the_connection() {
    for first in [0, 1] {
        let mut net = Net::pair();
        let ids: [ConnectionId; 2] = net.connected(80).into();
        net.send(1, ids[1], b"late reader").unwrap();
        net.shutdown(first, ids[first]);
        net.run(us(100_000));
        net.shutdown(1 - first, ids[1 - first]);
        net.run(us(60_000_000));
        assert_eq!(net.ends[0].readable(ids[0]), Ok(11));
        assert_eq!(net.recv(0, ids[0]), Ok(b"late reader".to_vec()));
        assert_eq!(net.recv(0, ids[0]), Ok(vec![]));
        net.close(0, ids[0]);
        net.close(1, ids[1]);
        gone(&mut net);
    }
}

#[test]
fn time_wait_connections_make_room_for_others() {
    let small = Options { send_buffer: Some(1000), receive_buffer: Some(1000), ..plain() };
    let with = |n| StackSpec { connections: 3, memory: 6000, time_wait: us(60_000_000), ..spec(n) };
    let mut net = Net::of([with(1), spec(2)]);
    let listener = net.ends[1].listen(80, 4, &small).unwrap();
    for _ in 0..8 {
        let now = net.now;
        let client = net.ends[0].connect(now, at(2, 80), None, &small).unwrap();
        net.run(us(1000));
        let server = net.ends[1].accept(listener).unwrap();
        net.close(0, client);
        net.run(us(1000));
        net.close(1, server);
        net.run(us(1000));
    }
    assert_eq!((net.ends[0].connections(), net.ends[1].connections()), (3, 0));
    net.run(us(61_000_000));
    assert_eq!((net.ends[0].connections(), net.ends[0].next_timer()), (0, None));
}
