//! Tests UDP: datagrams that are delivered, truncated, dropped or refused.

use crate::net::*;
use nicety_stack::*;

fn read(net: &mut Net, end: usize, id: DatagramId) -> Result<(Vec<u8>, std::net::SocketAddr), Error> {
    let mut bytes = vec![0; 65536];
    let (n, from) = net.ends[end].recv_from(id, &mut bytes)?;
    bytes.truncate(n);
    Ok((bytes, from))
}

#[test]
fn a_datagram_arrives_whole_with_its_sender() {
    for to in [at(2, 53), at6(2, 53)] {
        let mut net = Net::pair();
        let (a, b) = (net.ends[0].bind(Some(7)).unwrap(), net.ends[1].bind(Some(53)).unwrap());
        let most = net.ends[0].longest_datagram(to.ip());
        assert_eq!(most, if to.is_ipv4() { 1472 } else { 1452 });
        let long = pattern(1, most);
        for bytes in [&b"hello"[..], &[], &long] {
            net.ends[0].send_to(a, bytes, to).unwrap();
        }
        assert_eq!(net.ends[0].send_to(a, &vec![0; most + 1], to), Err(Error::MessageTooLong));
        net.run(us(1000));
        let from = if to.is_ipv4() { at(1, 7) } else { at6(1, 7) };
        assert_eq!(read(&mut net, 1, b), Ok((b"hello".to_vec(), from)));
        assert_eq!(read(&mut net, 1, b), Ok((vec![], from)));
        assert_eq!(read(&mut net, 1, b), Ok((long, from)));
        assert_eq!(read(&mut net, 1, b), Err(Error::WouldBlock));
    }
}

#[test]
fn a_full_receive_buffer_drops() {
    let mut net = Net::of([spec(1), StackSpec { receive_buffer: 2500, ..spec(2) }]);
    let (a, b) = (net.ends[0].bind(None).unwrap(), net.ends[1].bind(Some(53)).unwrap());
    for n in 0..4 {
        net.ends[0].send_to(a, &[n; 1000], at(2, 53)).unwrap();
    }
    net.run(us(1000));
    assert_eq!(net.ends[1].counters().drops(Drop::BufferFull), 2);
    assert_eq!(read(&mut net, 1, b).unwrap().0, [0; 1000]);
    assert_eq!(read(&mut net, 1, b).unwrap().0, [1; 1000]);
    assert_eq!(read(&mut net, 1, b), Err(Error::WouldBlock));
}

#[test]
fn ports_and_handles_are_checked() {
    let mut net = Net::pair();
    let a = net.ends[0].bind(Some(7)).unwrap();
    assert_eq!(net.ends[0].bind(Some(7)), Err(Error::AddressInUse));
    assert_eq!(net.ends[0].bind(Some(0)), Err(Error::Invalid));
    assert_eq!(net.ends[0].port(a), Ok(7));
    net.ends[0].close_datagrams(a).unwrap();
    assert_eq!(net.ends[0].send_to(a, b"x", at(2, 53)), Err(Error::BadHandle));
    assert_eq!(net.ends[0].recv_from(a, &mut []), Err(Error::BadHandle));
    assert_eq!(net.ends[0].close_datagrams(a), Err(Error::BadHandle));
    net.ends[0].bind(Some(7)).unwrap();
}

#[test]
fn the_send_buffer_is_bounded_and_unreachable_neighbours_free_it() {
    let mut net = Net::of([StackSpec { send_buffer: 2000, ..spec(1) }, spec(2)]);
    let a = net.ends[0].bind(None).unwrap();
    net.ends[0].send_to(a, &[0; 1000], at(9, 53)).unwrap();
    net.ends[0].send_to(a, &[0; 900], at(9, 53)).unwrap();
    assert_eq!(net.ends[0].send_to(a, &[0; 900], at(9, 53)), Err(Error::WouldBlock));
    net.run(us(3_100_000));
    assert!(net.took(0, Event::Undeliverable(a, Error::HostUnreachable)));
    net.ends[0].send_to(a, &[0; 1000], at(2, 53)).unwrap();
    net.run(us(1000));
    assert_eq!(net.ends[1].counters().drops(Drop::NoPort), 1, "no socket is bound there");
}
