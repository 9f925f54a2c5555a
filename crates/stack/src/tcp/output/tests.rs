//! Tests the contents and times of transmissions: windows, small segments, acknowledgements. The expected values are
//! computed by hand.

use super::super::State;
use super::super::tests::*;
use crate::frame::{ACK, FIN, TcpHeader};

#[test]
fn a_closed_window_is_probed_for_ever_while_the_peer_answers() {
    let (mut a, mut b) = pair(|setup| setup.receive = 200);
    a.send(at(200), &bytes(300));
    cross(&mut a, 200, &mut b, 250);
    cross(&mut b, 250, &mut a, 300);
    assert_eq!((a.window, a.queued()), (0, 100));
    let mut times = Vec::new();
    for _ in 0..9 {
        let due = a.deadline().unwrap();
        times.push(due.since(at(300)).ps() / 1_000_000_000);
        // The wait is the longest one from the seventh probe on.
        assert_eq!(a.only_probes(), times.len() > 6);
        a.on_timer(due);
        assert!(!a.only_probes(), "without an answer");
        let probe = take(&mut a, due).unwrap();
        assert_eq!(probe.brief(A), (ACK, 201, 1));
        assert!(a.output(due).is_none());
        assert!(give(&mut b, due, &probe).beyond);
        let answer = take(&mut b, due).unwrap();
        assert_eq!((answer.tcp.ack, answer.tcp.window), (A.wrapping_add(201), 0));
        give(&mut a, due, &answer);
    }
    assert!(a.only_probes() && !b.only_probes());
    // The probes follow 1 ms, 2 ms, 4 ms and so on after each other, up to 60 ms.
    assert_eq!(times, [1, 3, 7, 15, 31, 63, 123, 183, 243]);
    let now = at(300_000);
    received(&mut b, now);
    let update = take(&mut b, now).unwrap();
    assert_eq!(update.tcp.window, 200);
    give(&mut a, now, &update);
    assert_eq!(take(&mut a, now).unwrap().brief(A), (ACK, 201, 100));
}

#[test]
fn a_probes_byte_that_was_taken_is_not_sent_again() {
    let (mut a, mut b) = pair(|setup| setup.receive = 200);
    a.send(at(200), &bytes(300));
    cross(&mut a, 200, &mut b, 250);
    cross(&mut b, 250, &mut a, 300);
    // The window update is lost. The next probe finds room.
    received(&mut b, at(400));
    all(&mut b, at(400));
    a.on_timer(at(1300));
    let probe = take(&mut a, at(1300)).unwrap();
    assert_eq!(give(&mut b, at(1350), &probe).readable, 1);
    b.on_timer(at(1650));
    let ack = take(&mut b, at(1650)).unwrap();
    give(&mut a, at(1700), &ack);
    assert_eq!(take(&mut a, at(1700)).unwrap().brief(A), (ACK, 202, 99));
}

#[test]
fn small_segments_are_not_sent_into_small_windows() {
    let (mut a, b) = pair(|setup| setup.receive = 250);
    a.send(at(200), &bytes(400));
    // Two full segments. The remaining 50 bytes of room are neither a segment nor half of the maximum window.
    assert_eq!(all(&mut a, at(200)).iter().map(|sent| sent.payload.len()).collect::<Vec<_>>(), [100, 100]);
    let ack = plain(&b, B);
    let ack = Sent { tcp: TcpHeader { ack: A.wrapping_add(201), window: 50, ..ack.tcp }, ..ack };
    give(&mut a, at(300), &ack);
    assert!(a.output(at(300)).is_none());
    assert_eq!(a.deadline(), Some(at(1300)));
    a.on_timer(at(1300));
    assert_eq!(take(&mut a, at(1300)).unwrap().brief(A), (ACK, 201, 50), "rather than for ever");
}

#[test]
fn every_second_segment_is_acknowledged_and_a_single_one_late() {
    let (mut a, mut b) = pair(|_| ());
    a.send(at(200), &bytes(500));
    let sent = all(&mut a, at(200));
    let mut acks = Vec::new();
    for segment in &sent {
        give(&mut b, at(250), segment);
        acks.extend(all(&mut b, at(250)).iter().map(|ack| ack.tcp.ack.wrapping_sub(A)));
    }
    assert_eq!(acks, [201, 401]);
    assert_eq!(b.deadline(), Some(at(550)));
    b.on_timer(at(550));
    assert_eq!(take(&mut b, at(550)).unwrap().tcp.ack.wrapping_sub(A), 501);
    // An outgoing segment includes the delayed acknowledgement.
    a.send(at(600), &bytes(100));
    let segment = take(&mut a, at(600)).unwrap();
    give(&mut b, at(650), &segment);
    b.send(at(700), b"x");
    assert_eq!(take(&mut b, at(700)).unwrap().tcp.ack.wrapping_sub(A), 601);
    assert!(b.acks.at.is_none());
}

#[test]
fn an_older_acknowledgement_does_not_open_the_window() {
    let (mut a, b) = pair(|_| ());
    a.send(at(200), &bytes(300));
    all(&mut a, at(200));
    for (ack, window, now) in [(201, 100, 100), (101, 5000, 100), (201, 300, 300), (301, 50, 50)] {
        let mut segment = plain(&b, B);
        (segment.tcp.ack, segment.tcp.window) = (A.wrapping_add(ack), window);
        give(&mut a, at(300), &segment);
        assert_eq!(a.window, now);
    }
}

#[test]
fn an_end_behind_small_bytes_goes_with_them() {
    let (mut a, _) = pair(|_| ());
    a.send(at(200), b"one");
    assert_eq!(take(&mut a, at(200)).unwrap().brief(A), (ACK, 1, 3));
    a.send(at(210), b"two");
    assert!(a.output(at(210)).is_none(), "Nagle's algorithm");
    a.shut(at(220));
    assert_eq!(take(&mut a, at(220)).unwrap().brief(A), (FIN | ACK, 4, 3));
}

#[test]
fn an_end_is_taken_where_there_is_no_room() {
    let (mut a, mut b) = pair(|setup| setup.receive = 200);
    a.send(at(200), &bytes(200));
    cross(&mut a, 200, &mut b, 210);
    a.shut(at(220));
    cross(&mut a, 220, &mut b, 250);
    assert_eq!((b.state(), b.readable()), (State::CloseWait, 200));
    cross(&mut b, 250, &mut a, 300);
    assert_eq!(a.state(), State::FinWait2);
}
