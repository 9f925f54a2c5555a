//! Handshakes and closing of connections between two ends. The expected segments and times are computed by hand.

use super::input::Taken;
use super::*;
use crate::frame::{ACK, FIN, PSH, RST, SYN};

pub(super) const fn us(n: u64) -> Duration {
    Duration::from_us(n)
}

pub(super) fn at(n: u64) -> Time {
    Time::ZERO + us(n)
}

/// Segments of 100 bytes, retransmission timeouts of at least 1 ms, acknowledgements delayed by up to 300 us.
pub(super) fn setup() -> Setup {
    Setup {
        send: 10_000,
        receive: 10_000,
        nodelay: false,
        segment: 100,
        default_segment: 100,
        options: 40,
        burst: None,
        timestamps: false,
        sack: true,
        loss_probe: false,
        delayed_ack: Some(us(300)),
        ack_segments: 2,
        initial_rto: us(1000),
        min_rto: us(1000),
        max_rto: us(60_000),
        time_wait: us(20_000),
        timeout: us(1_000_000),
        connect_timeout: us(500_000),
        initial_window: 10,
        congestion: CongestionControl::Reno,
    }
}

/// A segment on its way.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub tcp: TcpHeader,
    pub options: TcpOptions,
    pub payload: Vec<u8>,
}

impl Sent {
    /// The flags, the position of the first byte (the SYN is at 0), and the bytes of payload.
    pub fn brief(&self, first: u32) -> (u8, u32, usize) {
        (self.tcp.flags & !PSH, self.tcp.seq.wrapping_sub(first), self.payload.len())
    }
}

pub(super) fn take(tcb: &mut Tcb, now: Time) -> Option<Sent> {
    let sending = tcb.output(now)?;
    let (a, b) = tcb.payload(sending.start, sending.payload);
    let tcp = TcpHeader {
        ports: (1, 2),
        seq: sending.seq,
        ack: sending.ack,
        flags: sending.flags,
        window: sending.window,
        length: 20,
    };
    Some(Sent { tcp, options: sending.options, payload: [a, b].concat() })
}

pub(super) fn all(tcb: &mut Tcb, now: Time) -> Vec<Sent> {
    std::iter::from_fn(|| take(tcb, now)).collect()
}

pub(super) fn give(tcb: &mut Tcb, now: Time, sent: &Sent) -> Taken {
    tcb.input(now, &sent.tcp, &sent.options, &sent.payload)
}

pub(super) fn give_all(tcb: &mut Tcb, now: Time, sent: &[Sent]) {
    sent.iter().for_each(|sent| {
        give(tcb, now, sent);
    });
}

/// Delivers all segments of one end to the other. Times are in microseconds.
pub(super) fn cross(from: &mut Tcb, sent: u64, to: &mut Tcb, given: u64) {
    let sent = all(from, at(sent));
    give_all(to, at(given), &sent);
}

/// Initial sequence numbers shortly before the wrap-around.
pub(super) const A: u32 = u32::MAX - 150;
pub(super) const B: u32 = u32::MAX - 10;

/// Returns two ends, connected since 100 us, with a round-trip time of 100 us.
pub(super) fn pair(change: impl Fn(&mut Setup)) -> (Tcb, Tcb) {
    let mut setup = setup();
    change(&mut setup);
    let mut a = Tcb::connect(at(0), setup.clone(), A);
    let syn = take(&mut a, at(0)).unwrap();
    assert_eq!((syn.tcp.flags, syn.options.segment, syn.options.scale), (SYN, Some(100), Some(0)));
    let mut b = Tcb::accept(at(50), setup, B, &syn.tcp, &syn.options);
    let answer = take(&mut b, at(50)).unwrap();
    assert_eq!((answer.tcp.flags, answer.tcp.ack), (SYN | ACK, A.wrapping_add(1)));
    give(&mut a, at(100), &answer);
    let ack = take(&mut a, at(100)).unwrap();
    give(&mut b, at(150), &ack);
    assert_eq!((a.state(), b.state()), (State::Established, State::Established));
    assert!(a.output(at(150)).is_none() && b.output(at(150)).is_none());
    (a, b)
}

pub(super) fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i % 251) as u8).collect()
}

pub(super) fn received(tcb: &mut Tcb, now: Time) -> Vec<u8> {
    let mut out = vec![0; tcb.readable()];
    tcb.recv(now, &mut out);
    out
}

/// Returns an acknowledgement that one end would send now.
pub(super) fn plain(tcb: &Tcb, first: u32) -> Sent {
    let tcp = TcpHeader {
        ports: (1, 2),
        seq: first.wrapping_add(tcb.next as u32),
        ack: tcb.receiver.expected(),
        flags: ACK,
        window: 10_000,
        length: 20,
    };
    Sent { tcp, options: TcpOptions::default(), payload: Vec::new() }
}

#[test]
fn numbers_that_come_round_change_nothing() {
    let (mut a, mut b) = pair(|_| ());
    let (mut now, mut got) = (at(200), Vec::new());
    a.send(now, &bytes(5000));
    while got.len() < 5000 {
        now += us(50);
        for sent in all(&mut a, now) {
            give(&mut b, now, &sent);
        }
        got.extend(received(&mut b, now));
        b.on_timer(now);
        for sent in all(&mut b, now) {
            give(&mut a, now, &sent);
        }
        assert!(now < at(20_000));
    }
    assert!(got == bytes(5000));
}

#[test]
fn both_ends_may_begin_at_once() {
    let mut ends = [Tcb::connect(at(0), setup(), A), Tcb::connect(at(0), setup(), B)];
    let syns = ends.each_mut().map(|end| take(end, at(0)).unwrap());
    give(&mut ends[0], at(50), &syns[1]);
    give(&mut ends[1], at(50), &syns[0]);
    assert!(ends.iter().all(|end| end.state() == State::SynReceived));
    let answers = ends.each_mut().map(|end| take(end, at(50)).unwrap());
    assert!(answers.iter().all(|answer| answer.tcp.flags == SYN | ACK));
    give(&mut ends[0], at(100), &answers[1]);
    // The SYN-ACK of end 0 is lost. The acknowledgement of end 1's own SYN establishes end 1 too.
    let ack = take(&mut ends[0], at(100)).unwrap();
    give(&mut ends[1], at(150), &ack);
    assert!(ends.iter().all(|end| end.state() == State::Established));
}

#[test]
fn both_ends_may_close_at_once() {
    let (mut a, mut b) = pair(|_| ());
    a.shut(at(200));
    b.shut(at(200));
    let (fin_a, fin_b) = (take(&mut a, at(200)).unwrap(), take(&mut b, at(200)).unwrap());
    assert_eq!((fin_a.brief(A), fin_b.brief(B)), ((FIN | ACK, 1, 0), (FIN | ACK, 1, 0)));
    give(&mut a, at(250), &fin_b);
    give(&mut b, at(250), &fin_a);
    assert_eq!((a.state(), b.state()), (State::Closing, State::Closing));
    let (ack_a, ack_b) = (take(&mut a, at(250)).unwrap(), take(&mut b, at(250)).unwrap());
    give(&mut a, at(300), &ack_b);
    give(&mut b, at(300), &ack_a);
    assert_eq!((a.state(), b.state()), (State::TimeWait, State::TimeWait));
    assert_eq!(a.deadline(), Some(at(20_300)));
}

#[test]
fn time_wait_answers_a_fin_that_comes_again_and_begins_anew() {
    let (mut a, mut b) = pair(|_| ());
    a.shut(at(200));
    let fin = take(&mut a, at(200)).unwrap();
    give(&mut b, at(250), &fin);
    let ack = take(&mut b, at(250)).unwrap();
    give(&mut a, at(300), &ack);
    assert_eq!((a.state(), b.state()), (State::FinWait2, State::CloseWait));
    b.shut(at(300));
    let fin = take(&mut b, at(300)).unwrap();
    assert_eq!(b.state(), State::LastAck);
    give(&mut a, at(350), &fin);
    assert_eq!((a.state(), a.deadline()), (State::TimeWait, Some(at(20_350))));
    let lost = take(&mut a, at(350));
    b.on_timer(at(1300));
    let again = take(&mut b, at(1300)).unwrap();
    assert_eq!(again.tcp, fin.tcp);
    give(&mut a, at(1350), &again);
    let ack = take(&mut a, at(1350)).unwrap();
    assert_eq!(ack.tcp, lost.unwrap().tcp);
    give(&mut b, at(1400), &ack);
    assert!(b.is_gone());
    assert_eq!(a.deadline(), Some(at(21_350)));
    a.on_timer(at(21_350));
    assert!(a.is_gone());
}

#[test]
fn a_reset_needs_the_exact_number() {
    let (mut a, b) = pair(|_| ());
    let mut reset = plain(&b, B);
    reset.tcp.flags = RST;
    for (seq, challenged) in [(2u32, true), (9000, false), (20_000, false)] {
        reset.tcp.seq = B.wrapping_add(seq);
        assert!(!give(&mut a, at(200), &reset).reset);
        // At most one reply in half a second, and no reply to segments outside the window.
        assert_eq!(take(&mut a, at(200)).map(|answer| answer.brief(A)), challenged.then_some((ACK, 1, 0)));
    }
    reset.tcp.seq = B.wrapping_add(1);
    assert!(give(&mut a, at(200), &reset).reset);
    assert_eq!(a.state(), State::Closed);
}

#[test]
fn segments_that_cannot_be_are_challenged_seldom() {
    let (mut a, b) = pair(|_| ());
    let good = plain(&b, B);
    let with = |change: &dyn Fn(&mut TcpHeader)| {
        let mut other = good.clone();
        change(&mut other.tcp);
        other
    };
    let odd = [
        with(&|tcp| tcp.flags = SYN),
        with(&|tcp| tcp.ack = tcp.ack.wrapping_add(1)),
        with(&|tcp| tcp.ack = tcp.ack.wrapping_sub(100_000)),
        with(&|tcp| tcp.seq = tcp.seq.wrapping_sub(1)),
    ];
    for (n, segment) in odd.iter().enumerate() {
        let now = at(500_000 * (n as u64 + 1));
        for _ in 0..3 {
            assert_eq!(give(&mut a, now, segment), Taken::default());
        }
        let answers: Vec<_> = all(&mut a, now).iter().map(|answer| answer.brief(A)).collect();
        assert_eq!(answers, [(ACK, 1, 0)], "{n}");
        assert_eq!(a.state(), State::Established);
    }
}

#[test]
fn a_segment_with_an_older_time_stamp_is_refused() {
    let (mut a, mut b) = pair(|setup| setup.timestamps = true);
    a.send(at(5_000), b"new");
    let new = take(&mut a, at(5_000)).unwrap();
    assert_eq!(new.options.stamps, Some((5, 0)));
    give(&mut b, at(5_050), &new);
    let mut old = new.clone();
    old.tcp.seq = old.tcp.seq.wrapping_add(3);
    old.options.stamps = Some((4, 0));
    assert_eq!(give(&mut b, at(5_060), &old).readable, 0);
    assert_eq!(take(&mut b, at(5_060)).unwrap().options.stamps, Some((5, 5)), "answered");
    old.options.stamps = Some((6, 0));
    assert_eq!(give(&mut b, at(5_070), &old).readable, 3);
    // An out-of-order segment does not update the recent time stamp. The segment that fills the hole has an older stamp
    // and is accepted.
    let mut early = old.clone();
    early.tcp.seq = early.tcp.seq.wrapping_add(6);
    early.options.stamps = Some((9, 0));
    give(&mut b, at(5_080), &early);
    old.tcp.seq = old.tcp.seq.wrapping_add(3);
    old.options.stamps = Some((8, 0));
    assert_eq!(give(&mut b, at(5_090), &old).readable, 6);
}

#[test]
fn options_of_a_syn_are_answered_where_they_were_offered() {
    let mut a = Tcb::connect(at(0), Setup { receive: 200_000, timestamps: true, ..setup() }, A);
    let syn = take(&mut a, at(0)).unwrap();
    let all = TcpOptions {
        scale: Some(2),
        sack_permitted: true,
        segment: Some(100),
        stamps: Some((0, 0)),
        ..syn.options
    };
    assert_eq!(syn.options, all);
    for (offered, answered) in [
        (
            TcpOptions { segment: Some(3), ..TcpOptions::default() },
            TcpOptions { segment: Some(100), ..TcpOptions::default() },
        ),
        (TcpOptions { scale: None, ..all }, TcpOptions { scale: None, ..all }),
        (TcpOptions { stamps: None, ..all }, TcpOptions { stamps: None, ..all }),
    ] {
        let setup = Setup { receive: 200_000, timestamps: true, ..setup() };
        let mut b = Tcb::accept(at(0), setup, B, &syn.tcp, &offered);
        assert_eq!(take(&mut b, at(0)).unwrap().options, answered);
        let least =
            if offered.segment == Some(3) { 28 } else { 100 } - if offered.stamps.is_some() { 12 } else { 0 };
        assert_eq!(b.segment, least);
    }
}

#[test]
fn silence_is_over_after_its_time() {
    let (mut a, _) = pair(|_| ());
    a.send(at(200), b"?");
    take(&mut a, at(200));
    loop {
        let due = a.deadline().unwrap();
        if a.on_timer(due) == Expired::TimedOut {
            assert_eq!(due, at(1_000_200));
            break;
        }
        all(&mut a, due);
    }
}

/// Returns the numbers, from 1, of the segments that are acknowledged at once. The first segment arrives at a given
/// instant, and each further segment 10 us after the previous segment.
fn acknowledged(a: &mut Tcb, b: &mut Tcb, from: u64, sizes: &[usize]) -> Vec<usize> {
    let mut seen = Vec::new();
    for (number, &size) in sizes.iter().enumerate() {
        let now = from + 10 * number as u64;
        assert_eq!(a.send(at(now), &bytes(size)), size);
        cross(a, now, b, now);
        received(b, at(now));
        let acks = all(b, at(now));
        if !acks.is_empty() {
            seen.push(number + 1);
        }
        give_all(a, at(now), &acks);
    }
    seen
}

#[test]
fn an_acknowledgement_waits_for_more_segments_each_time_up_to_their_most() {
    let (mut a, mut b) = pair(|setup| (setup.ack_segments, setup.nodelay) = (4, true));
    // Acknowledgements wait for 2, 3, 4 and 4 segments. The acknowledgement of the last two is delayed until its timer.
    // So the maximum is 3 from then on, and the count begins with 2 again.
    assert_eq!(acknowledged(&mut a, &mut b, 200, &[100; 15]), [2, 5, 9, 13]);
    assert_eq!(b.deadline(), Some(at(200 + 130 + 300)));
    b.on_timer(at(630));
    cross(&mut b, 630, &mut a, 630);
    assert_eq!(acknowledged(&mut a, &mut b, 700, &[100; 9]), [2, 5, 8]);
    b.on_timer(at(1100));
    cross(&mut b, 1100, &mut a, 1100);
    // A short segment ends a burst. A single segment waits for the timer, and the number of segments to wait for is
    // unchanged.
    assert_eq!(acknowledged(&mut a, &mut b, 1200, &[100, 10, 10, 10]), [2, 4]);
    let (mut a, mut b) = pair(|setup| setup.nodelay = true);
    assert_eq!(acknowledged(&mut a, &mut b, 200, &[100; 5]), [2, 4]);
}
