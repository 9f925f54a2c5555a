//! Tests handshakes: established, refused and unanswered connections, and more connections than allowed.

use crate::net::*;
use nicety_stack::*;

const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

#[test]
fn three_segments_establish_a_connection_after_arp() {
    let mut net = Net::pair();
    net.log = Some(Vec::new());
    let (client, server) = net.connected(80);
    let flags: Vec<_> = net.segments().iter().map(|(from, tcp, _)| (*from, tcp.flags)).collect();
    assert_eq!(flags, [(0, SYN), (1, SYN | ACK), (0, ACK)]);
    let log = net.log.as_ref().unwrap();
    let types: Vec<_> = log.iter().map(|(from, frame)| (*from, frame[12], frame[13])).collect();
    assert_eq!(
        types,
        [(0, 8, 6), (1, 8, 6), (0, 8, 0), (1, 8, 0), (0, 8, 0)],
        "a question, an answer, and no more"
    );
    assert_eq!(log[0].1[..6], [0xff; 6]);
    let segments = net.segments();
    assert_eq!(segments[1].1.ack, segments[0].1.seq.wrapping_add(1));
    assert_eq!(segments[2].1.ack, segments[1].1.seq.wrapping_add(1));
    let (ours, theirs) = net.ends[0].ends(client).unwrap();
    assert_eq!((ours.ip(), theirs), (at(1, 0).ip(), at(2, 80)));
    assert_eq!(net.ends[1].ends(server).unwrap(), (theirs, ours));
}

#[test]
fn ipv6_asks_by_neighbour_discovery() {
    let mut net = Net::pair();
    net.log = Some(Vec::new());
    let (client, server) = net.connected_with(80, at6(2, 80), &plain(), &plain());
    let log = net.log.as_ref().unwrap();
    assert_eq!(log[0].1[..6], [0x33, 0x33, 0xff, 0, 0, 2], "the solicited-node group of fd00::2");
    assert!(log.iter().all(|(_, frame)| frame[12..14] == [0x86, 0xdd]));
    assert_eq!(net.segments().len(), 3);
    net.transfer((0, client), (1, server), &pattern(1, 100_000), us(1_000_000));
    net.transfer((1, server), (0, client), &pattern(2, 100_000), us(1_000_000));
}

#[test]
fn a_closed_port_refuses() {
    for to in [at(2, 81), at6(2, 81)] {
        let mut net = Net::pair();
        net.log = Some(Vec::new());
        let id = net.ends[0].connect(net.now, to, None, &plain()).unwrap();
        assert_eq!(net.send(0, id, b"x"), Err(Error::NotConnected));
        net.run(us(1000));
        let flags: Vec<_> = net.segments().iter().map(|(from, tcp, _)| (*from, tcp.flags)).collect();
        assert_eq!(flags, [(0, SYN), (1, RST | ACK)]);
        assert!(net.took(0, Event::Failed(id, Error::ConnectionRefused)));
        assert_eq!(net.send(0, id, b"x"), Err(Error::ConnectionRefused));
        assert_eq!(net.recv(0, id), Err(Error::ConnectionRefused));
        assert_eq!(net.ends[1].counters().drops(Drop::NoPort), 1);
        net.close(0, id);
        assert_eq!(net.ends[0].connections(), 0);
        assert_eq!(net.send(0, id, b"x"), Err(Error::BadHandle));
    }
}

#[test]
fn a_host_that_is_not_there_is_unreachable() {
    let mut net = Net::pair();
    let id = net.ends[0].connect(net.now, at(9, 80), None, &plain()).unwrap();
    // The stack sends three requests, a second apart. It also waits a second after the last request.
    net.run(us(2_999_999));
    assert!(net.events.is_empty());
    net.run(us(2));
    assert!(net.took(0, Event::Failed(id, Error::HostUnreachable)));
    net.close(0, id);
    assert_eq!(net.ends[0].connections(), 0);
    let far = "192.168.0.1:80".parse().unwrap();
    assert_eq!(net.ends[0].connect(net.now, far, None, &plain()), Err(Error::NetworkUnreachable));
}

#[test]
fn a_gateway_takes_what_is_for_other_networks() {
    let mut first = spec(1);
    first.ipv4.as_mut().unwrap().gateway = Some(std::net::Ipv4Addr::new(10, 0, 0, 2));
    let mut net = Net::of([first, spec(2)]);
    net.log = Some(Vec::new());
    net.ends[0].connect(net.now, "192.168.0.1:80".parse().unwrap(), None, &plain()).unwrap();
    net.run(us(100));
    let (_, syn) = &net.log.as_ref().unwrap()[2];
    assert_eq!(syn[..6], [2, 0, 0, 0, 0, 2]);
    assert_eq!(syn[30..34], [192, 168, 0, 1]);
    assert_eq!(net.ends[1].counters().drops(Drop::NotForUs), 1);
}

#[test]
fn silence_ends_a_connection_in_time() {
    // The timeout of established connections has no effect on the handshake.
    let own = StackSpec { timeout: us(1_000), connect_timeout: us(5_000_000), ..spec(1) };
    let mut net = Net::of([own, spec(2)]);
    net.ends[0].add_neighbour(at(2, 0).ip(), [2, 0, 0, 0, 0, 2]);
    net.filter = Some(Box::new(|from, _| from == 0));
    net.log = Some(Vec::new());
    let id = net.ends[0].connect(net.now, at(2, 80), None, &plain()).unwrap();
    net.run(us(4_999_999));
    // The retransmission timeout doubles from 1 s: at 0, 1 and 3 s.
    assert_eq!(net.segments().len(), 3);
    net.run(us(2));
    assert!(net.took(0, Event::Failed(id, Error::TimedOut)));
    net.run(us(1_000_000));
    assert_eq!(net.segments().len(), 3, "there is no peer to be told");
}

#[test]
fn both_may_begin() {
    let mut net = Net::pair();
    let a = net.ends[0].connect(net.now, at(2, 7000), Some(7001), &plain()).unwrap();
    let b = net.ends[1].connect(net.now, at(1, 7001), Some(7000), &plain()).unwrap();
    net.run(us(3_000_000));
    assert!(net.took(0, Event::Connected(a)) && net.took(1, Event::Connected(b)));
    net.transfer((0, a), (1, b), &pattern(3, 5000), us(1_000_000));
    net.transfer((1, b), (0, a), &pattern(4, 5000), us(1_000_000));
}

#[test]
fn a_full_backlog_drops_until_somebody_accepts() {
    let mut net = Net::pair();
    let listener = net.ends[1].listen(80, 2, &plain()).unwrap();
    let now = net.now;
    let ids: Vec<_> = (0..3).map(|_| net.ends[0].connect(now, at(2, 80), None, &plain()).unwrap()).collect();
    net.run(us(1000));
    let connected = |net: &mut Net, id| net.took(0, Event::Connected(id));
    assert!(connected(&mut net, ids[0]) && connected(&mut net, ids[1]) && !connected(&mut net, ids[2]));
    assert_eq!(net.ends[1].counters().drops(Drop::Backlog), 1);
    let first = net.ends[1].accept(listener).unwrap();
    assert_eq!(net.ends[1].ends(first).unwrap().1, net.ends[0].ends(ids[0]).unwrap().0, "in order");
    // The third connection retransmits its SYN after the initial timeout of 1 s.
    net.run(us(1_050_000));
    assert!(connected(&mut net, ids[2]));
    net.ends[1].accept(listener).unwrap();
    net.ends[1].accept(listener).unwrap();
    assert_eq!(net.ends[1].accept(listener), Err(Error::WouldBlock));
}

#[test]
fn a_closed_listener_resets_what_it_has() {
    let mut net = Net::pair();
    let listener = net.ends[1].listen(80, 4, &plain()).unwrap();
    let id = net.ends[0].connect(net.now, at(2, 80), None, &plain()).unwrap();
    net.run(us(1000));
    assert!(net.took(0, Event::Connected(id)));
    let now = net.now;
    net.ends[1].close_listener(now, listener).unwrap();
    net.run(us(1000));
    assert!(net.took(0, Event::Failed(id, Error::ConnectionReset)));
    assert_eq!(net.ends[1].connections(), 0);
    assert_eq!(net.ends[1].accept(listener), Err(Error::BadHandle));
    net.ends[1].listen(80, 4, &plain()).unwrap();
}

#[test]
fn the_seed_decides_ports_and_sequence_numbers() {
    let first_syn = |seed| {
        let mut net = Net::of([StackSpec { seed, ..spec(1) }, spec(2)]);
        net.log = Some(Vec::new());
        net.connected(80);
        let (_, tcp, _) = net.segments()[0];
        (tcp.seq, tcp.ports.0)
    };
    assert_eq!(first_syn(5), first_syn(5));
    assert_ne!(first_syn(5), first_syn(6));
}
