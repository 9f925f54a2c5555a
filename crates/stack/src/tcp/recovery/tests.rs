//! Tests losses between two ends. The expected segments and times are computed by hand.

use super::super::Tcb;
use super::super::flight::Mark;
use super::super::tests::*;
use super::super::timers::Expired;
use crate::frame::ACK;

#[test]
fn several_losses_in_a_window_are_mended_in_one_round_trip() {
    let (mut a, mut b) = pair(|_| ());
    a.send(at(200), &bytes(1000));
    let sent = all(&mut a, at(200));
    assert_eq!(sent.len(), 10, "the initial window");
    // The second, fourth and sixth segments are lost.
    for n in [0, 2, 4, 6, 7, 8, 9] {
        give(&mut b, at(250), &sent[n]);
    }
    let acks = all(&mut b, at(250));
    // The newest SACK range is first. Position 1 has the sequence number A + 1.
    let number = |position: u32| A.wrapping_add(position);
    let last: Vec<_> = acks.last().unwrap().options.sacks.iter().collect();
    let expect = [(601, 1001), (401, 501), (201, 301)].map(|(s, e)| (number(s), number(e)));
    assert_eq!(last, expect);
    assert_eq!(acks.len(), 6, "one for each segment out of order, with which goes that of the first");
    for ack in &acks {
        give(&mut a, at(300), ack);
    }
    // 7 segments have arrived and 3 are lost. The window is half of 10 segments, and no segment is in flight.
    assert_eq!((a.congestion.window(), a.flight.lost()), (500, 300));
    let again: Vec<_> = all(&mut a, at(300)).iter().map(|sent| sent.brief(A)).collect();
    assert_eq!(again, [(ACK, 101, 100), (ACK, 301, 100), (ACK, 501, 100)]);
    for (_, start, length) in again {
        let (start, length) = (start as usize - 1, length);
        let mut segment = sent[0].clone();
        segment.tcp.seq = A.wrapping_add(1 + start as u32);
        segment.payload = bytes(1000)[start..start + length].to_vec();
        give(&mut b, at(350), &segment);
    }
    assert!(received(&mut b, at(350)) == bytes(1000));
    for ack in all(&mut b, at(350)) {
        give(&mut a, at(400), &ack);
    }
    assert_eq!((a.queued(), a.counts.recoveries, a.counts.timeouts), (0, 1, 0));
    assert_eq!(a.congestion.window(), 500, "which grows after recovery");
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    let (mut a, mut b) = pair(|_| ());
    a.send(at(200), &bytes(2000));
    let sent = all(&mut a, at(200));
    give_all(&mut b, at(250), &sent[1..]);
    cross(&mut b, 250, &mut a, 300);
    // The sender retransmits the first segment, and the retransmission is lost too. Four new segments follow it.
    let sent = all(&mut a, at(300));
    let briefs: Vec<_> = sent.iter().map(|sent| sent.brief(A).1).collect();
    assert_eq!(briefs, [1, 1001, 1101, 1201, 1301]);
    give_all(&mut b, at(350), &sent[1..]);
    cross(&mut b, 350, &mut a, 400);
    assert_eq!(take(&mut a, at(400)).unwrap().brief(A), (ACK, 1, 100), "one round trip later");
    assert_eq!((a.counts.recoveries, a.counts.timeouts), (1, 0));
}

#[test]
fn without_sack_partial_acknowledgements_show_one_loss_a_round_trip() {
    let (mut a, mut b) = pair(|setup| setup.sack = false);
    a.send(at(200), &bytes(2000));
    let sent = all(&mut a, at(200));
    let lost = [1, 3];
    for n in (0..10).filter(|n| !lost.contains(n)) {
        give(&mut b, at(250), &sent[n]);
    }
    let acks = all(&mut b, at(250));
    assert!(acks.iter().all(|ack| ack.options.sacks.is_empty() && ack.tcp.ack == A.wrapping_add(101)));
    // The first acknowledgement advances. Two duplicates release a new segment each (limited transmit). The third
    // duplicate shows a loss.
    let mut briefs = Vec::new();
    for ack in &acks {
        give(&mut a, at(300), ack);
        briefs.push(all(&mut a, at(300)).iter().map(|sent| sent.brief(A).1).collect::<Vec<_>>());
    }
    assert_eq!(briefs[..5], [vec![1001, 1101], vec![1201], vec![1301], vec![101], vec![]]);
    let mut segment = sent[1].clone();
    give(&mut b, at(350), &segment);
    cross(&mut b, 350, &mut a, 400);
    assert_eq!(take(&mut a, at(400)).unwrap().brief(A), (ACK, 301, 100), "a partial acknowledgement");
    segment = sent[3].clone();
    give(&mut b, at(450), &segment);
    assert_eq!(b.readable(), 1000);
    assert_eq!((a.counts.recoveries, a.counts.timeouts), (1, 0));
}

#[test]
fn timeouts_double_and_one_measurement_ends_that() {
    let (mut a, mut b) = pair(|setup| setup.max_rto = us(5000));
    a.send(at(200), &bytes(300));
    assert_eq!(all(&mut a, at(200)).len(), 3);
    let mut times = Vec::new();
    for _ in 0..5 {
        let due = a.deadline().unwrap();
        times.push(due.since(at(200)));
        assert_eq!(a.on_timer(due), Expired::Fine);
        let again: Vec<_> = all(&mut a, due).iter().map(|sent| sent.brief(A)).collect();
        assert_eq!(again, [(ACK, 1, 100)], "one segment at a time");
    }
    // The timeout is 1 ms, then 2 ms, 4 ms, and at most 5 ms.
    assert_eq!(times, [1000, 3000, 7000, 12_000, 17_000].map(us));
    assert_eq!((a.congestion.window(), a.counts.timeouts), (100, 5));
    // All three segments arrive late, as one segment coalesced by a card.
    let start = at(17_200);
    let mut segment = Sent { payload: bytes(300), ..plain(&a, A) };
    segment.tcp.seq = A.wrapping_add(1);
    give(&mut b, start, &segment);
    let ack = take(&mut b, start).unwrap();
    give(&mut a, start, &ack);
    assert_eq!((a.queued(), a.flight.is_empty()), (0, true));
    a.send(start, &bytes(100));
    let segment = take(&mut a, start).unwrap();
    assert_eq!(a.deadline(), Some(start + us(5000)), "what was sent again measures nothing");
    give(&mut b, start + us(50), &segment);
    b.on_timer(start + us(350));
    let ack = take(&mut b, start + us(350)).unwrap();
    give(&mut a, start + us(400), &ack);
    a.send(start + us(400), b"!");
    take(&mut a, start + us(400));
    assert_eq!(a.deadline(), Some(start + us(1400)));
}

#[test]
fn a_lost_tail_is_probed_for_and_the_rest_follows() {
    let (mut a, mut b) = pair(|setup| setup.loss_probe = true);
    a.send(at(200), &bytes(400));
    let sent = all(&mut a, at(200));
    give(&mut b, at(250), &sent[0]);
    // The probe is sent after two round trips of 100 us. The retransmission timeout would be after 1000 us.
    assert_eq!(a.deadline(), Some(at(400)));
    a.on_timer(at(400));
    let probe = all(&mut a, at(400));
    assert_eq!(probe.iter().map(|sent| sent.brief(A)).collect::<Vec<_>>(), [(ACK, 301, 100)]);
    assert_eq!(a.deadline(), Some(at(1400)), "then the timeout, from here");
    give(&mut b, at(450), &probe[0]);
    cross(&mut b, 450, &mut a, 500);
    let again: Vec<_> = all(&mut a, at(500)).iter().map(|sent| sent.brief(A).1).collect();
    assert_eq!(again, [101, 201]);
}

#[test]
fn a_late_segment_is_waited_for_once_the_network_has_reordered() {
    let (mut a, mut b) = pair(|setup| setup.loss_probe = true);
    // With a single segment beyond a hole, the sender waits for another quarter of a round trip.
    a.send(at(200), &bytes(200));
    let sent = all(&mut a, at(200));
    give(&mut b, at(250), &sent[1]);
    let ack = take(&mut b, at(250)).unwrap();
    give(&mut a, at(300), &ack);
    assert_eq!((a.flight.lost(), a.deadline()), (0, Some(at(325))));
    assert!(a.timers.probe.is_none(), "a hole is no tail");
    give(&mut b, at(310), &sent[0]);
    let ack = take(&mut b, at(310)).unwrap();
    give(&mut a, at(320), &ack);
    assert_eq!((a.queued(), a.counts.recoveries), (0, 0));
    // From now on, even three segments beyond a hole prove no loss.
    a.send(at(400), &bytes(400));
    let sent = all(&mut a, at(400));
    give_all(&mut b, at(450), &sent[1..]);
    cross(&mut b, 450, &mut a, 500);
    assert_eq!((a.flight.lost(), a.deadline()), (0, Some(at(525))));
    a.on_timer(at(525));
    assert_eq!(a.flight.first().map(|first| first.mark), Some(Mark::Lost));
}

#[test]
fn segments_dropped_twice_are_sent_again() {
    let (mut a, mut b) = pair(|_| ());
    a.send(at(200), &bytes(300));
    let sent = all(&mut a, at(200));
    give(&mut b, at(250), &sent[1]);
    give(&mut b, at(250), &sent[2]);
    cross(&mut b, 250, &mut a, 300);
    // An acknowledgement of the first segment alone: the peer has discarded the two other segments.
    let mut ack = plain(&b, B);
    ack.tcp.ack = A.wrapping_add(101);
    give(&mut a, at(310), &ack);
    assert_eq!((a.flight.sacked(), a.flight.lost()), (200, 0));
    let due = a.deadline().unwrap();
    a.on_timer(due);
    assert_eq!(take(&mut a, due).unwrap().brief(A), (ACK, 101, 100));
}

#[test]
fn a_probe_that_has_filled_a_hole_makes_the_window_smaller() {
    for late in [false, true] {
        let (mut a, mut b) = pair(|setup| (setup.loss_probe, setup.delayed_ack) = (true, None));
        a.send(at(200), &bytes(100));
        let first = take(&mut a, at(200)).unwrap();
        assert_eq!(a.deadline(), Some(at(400)));
        a.on_timer(at(400));
        let probe = take(&mut a, at(400)).unwrap();
        let came = if late { vec![first, probe] } else { vec![probe] };
        for segment in came {
            give(&mut b, at(450), &segment);
            cross(&mut b, 450, &mut a, 500);
        }
        a.send(at(500), &bytes(200));
        cross(&mut a, 500, &mut b, 550);
        cross(&mut b, 550, &mut a, 600);
        // If the probe filled a hole, the window shrinks to its minimum of two segments. If the first segment was only
        // late, a duplicate acknowledgement shows this, and the window stays.
        assert_eq!((a.queued(), a.congestion.window()), (0, if late { 1000 } else { 200 }), "late: {late}");
    }
}

#[test]
fn a_single_segment_is_probed_for_after_the_time_of_a_late_acknowledgement() {
    let (mut a, _) = pair(|setup| setup.loss_probe = true);
    a.send(at(200), &bytes(100));
    take(&mut a, at(200));
    assert_eq!(a.deadline(), Some(at(700)), "two round trips of 100 us and 300 us");
}

#[test]
fn two_timeouts_of_one_segment_are_one_loss() {
    let (mut a, mut b) = pair(|_| ());
    a.send(at(200), &bytes(1000));
    let sent = all(&mut a, at(200));
    for _ in 0..3 {
        let due = a.deadline().unwrap();
        a.on_timer(due);
        take(&mut a, due);
    }
    give_all(&mut b, at(8000), &sent);
    let ack = all(&mut b, at(8000)).pop().unwrap();
    give(&mut a, at(8050), &ack);
    assert_eq!(
        (a.queued(), a.congestion.window()),
        (0, 500),
        "slow start ends at half of the flight of 1000"
    );
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let (mut a, mut b) = pair(|setup| setup.delayed_ack = None);
    for round in 0..20 {
        let now = 200 + 200 * round;
        a.send(at(now), &bytes(100));
        cross(&mut a, now, &mut b, now + 50);
        cross(&mut b, now + 50, &mut a, now + 100);
    }
    assert_eq!((a.queued(), a.congestion.window()), (0, 1000));
}

#[test]
fn an_idle_connection_begins_again_with_its_first_window() {
    let (mut a, mut b) = pair(|_| ());
    a.send(at(200), &bytes(5000));
    for round in 0..5 {
        cross(&mut a, 200 + 100 * round, &mut b, 250 + 100 * round);
        cross(&mut b, 250 + 100 * round, &mut a, 300 + 100 * round);
        received(&mut b, at(300 + 100 * round));
    }
    assert!(a.congestion.window() > 2000);
    a.send(at(5000), &bytes(5000));
    assert_eq!(all(&mut a, at(5000)).len(), 10);
}

#[test]
fn a_lost_syn_makes_a_careful_beginning() {
    let mut a = Tcb::connect(at(0), setup(), A);
    take(&mut a, at(0));
    a.on_timer(at(1000));
    let syn = take(&mut a, at(1000)).unwrap();
    let mut b = Tcb::accept(at(1050), setup(), B, &syn.tcp, &syn.options);
    cross(&mut b, 1050, &mut a, 1100);
    a.send(at(1100), &bytes(1000));
    assert_eq!(all(&mut a, at(1100)).len(), 1, "one segment");
    assert_eq!(a.deadline(), Some(at(4100)), "three times the first timeout");
}
