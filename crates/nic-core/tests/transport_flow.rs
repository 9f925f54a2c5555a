//! The two ends of a flow over an adversarial channel, without simulated time. The accepted packets are always a prefix
//! of the sent packets, each once and in order. When the channel is reliable again, all packets arrive.

use nicety_nic_core::parts::transport::{Arrived, Expired, Receiving, Sending};
use proptest::prelude::*;
use std::collections::VecDeque;

/// The next step of the channel, the clock or the sender. An index is taken modulo the number of candidates.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The sender sends a new packet.
    Send,
    /// The sender resends an old packet.
    Again,
    /// A packet or an answer in flight arrives.
    Deliver(usize),
    Answer(usize),
    /// A packet or an answer is lost or duplicated.
    LosePacket(usize),
    LoseAnswer(usize),
    DoublePacket(usize),
    DoubleAnswer(usize),
    /// The timeout expires.
    Expire,
}

fn step() -> impl Strategy<Value = Step> {
    let any = any::<usize>();
    prop_oneof![
        6 => Just(Step::Send),
        4 => Just(Step::Again),
        6 => any.prop_map(Step::Deliver),
        5 => any.prop_map(Step::Answer),
        2 => any.prop_map(Step::LosePacket),
        1 => any.prop_map(Step::LoseAnswer),
        1 => any.prop_map(Step::DoublePacket),
        1 => any.prop_map(Step::DoubleAnswer),
        1 => Just(Step::Expire),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Expected(u64),
    Missing(u64),
}

struct Pair {
    sending: Sending<u64>,
    receiving: Receiving,
    window: u64,
    /// The packets in flight: number and content.
    packets: VecDeque<(u64, u64)>,
    answers: VecDeque<Answer>,
    sent: u64,
    /// The expected result: the accepted contents, in order.
    taken: Vec<u64>,
}

impl Pair {
    fn new(window: u32) -> Pair {
        Pair {
            sending: Sending::new(window, u32::MAX),
            receiving: Receiving::default(),
            window: window.into(),
            packets: VecDeque::new(),
            answers: VecDeque::new(),
            sent: 0,
            taken: Vec::new(),
        }
    }

    fn send(&mut self) {
        if self.sending.has_room() {
            // The content differs from the number, so that a wrong number is detected.
            let content = self.sent * 3 + 1;
            self.packets.push_back((self.sending.next(), content));
            self.sending.sent(content);
            self.sent += 1;
        }
    }

    fn again(&mut self) {
        if let Some((number, content)) = self.sending.send_again() {
            self.packets.push_back((number, *content));
        }
    }

    fn deliver(&mut self, at: usize) {
        let (number, content) = self.packets.remove(at).unwrap();
        match self.receiving.arrived(number) {
            Arrived::Next => {
                self.taken.push(content);
                self.answers.push_back(Answer::Expected(self.receiving.expected()));
            }
            Arrived::Before => self.answers.push_back(Answer::Expected(self.receiving.expected())),
            Arrived::Ahead { refuse: true } => {
                self.answers.push_back(Answer::Missing(self.receiving.expected()));
            }
            Arrived::Ahead { refuse: false } => {}
        }
    }

    fn answer(&mut self, at: usize) {
        match self.answers.remove(at).unwrap() {
            Answer::Expected(number) => self.sending.acknowledged(number),
            Answer::Missing(number) => self.sending.refused(number),
        };
    }

    fn step(&mut self, step: Step) {
        let (packets, answers) = (self.packets.len(), self.answers.len());
        match step {
            Step::Send => self.send(),
            Step::Again => self.again(),
            Step::Expire if !self.sending.is_idle() => assert_eq!(self.sending.expired(), Expired::Again),
            Step::Deliver(at) if packets > 0 => self.deliver(at % packets),
            Step::LosePacket(at) if packets > 0 => drop(self.packets.remove(at % packets)),
            Step::DoublePacket(at) if packets > 0 => self.packets.push_back(self.packets[at % packets]),
            Step::Answer(at) if answers > 0 => self.answer(at % answers),
            Step::LoseAnswer(at) if answers > 0 => drop(self.answers.remove(at % answers)),
            Step::DoubleAnswer(at) if answers > 0 => self.answers.push_back(self.answers[at % answers]),
            _ => {}
        }
        self.check();
    }

    fn check(&self) {
        assert!(self.taken.iter().zip(0..).all(|(content, i)| *content == i * 3 + 1), "{:?}", self.taken);
        assert_eq!(self.receiving.expected(), self.taken.len() as u64);
        let acknowledged = (0..self.sent).take_while(|&n| self.sending.is_acknowledged(n)).count();
        assert!(acknowledged <= self.taken.len(), "nothing is acknowledged that was not taken");
        assert!(self.sent - acknowledged as u64 <= self.window);
    }
}

proptest! {
    #[test]
    fn everything_is_taken_once_and_in_order(
        window in 1u32..9, steps in prop::collection::vec(step(), 0..300)
    ) {
        let mut pair = Pair::new(window);
        steps.into_iter().for_each(|step| pair.step(step));
        // From now on the channel loses no packet, and the timeout expires when no packet is in flight.
        for _ in 0..10_000 {
            if pair.sending.is_idle() && pair.packets.is_empty() && pair.answers.is_empty() {
                break;
            }
            let step = match (pair.packets.len(), pair.answers.len(), pair.sending.is_behind()) {
                (_, 1.., _) => Step::Answer(0),
                (1.., ..) => Step::Deliver(0),
                (.., true) => Step::Again,
                _ => Step::Expire,
            };
            pair.step(step);
        }
        prop_assert!(pair.sending.is_idle());
        prop_assert_eq!(pair.taken.len() as u64, pair.sent);
        prop_assert!(pair.sending.has_room());
    }
}

#[test]
fn a_window_that_is_full_waits_and_one_that_goes_back_does_too() {
    let mut sending = Sending::new(3, 7);
    for n in 0..3 {
        assert!(sending.has_room());
        sending.sent(n);
    }
    assert!(!sending.has_room());
    assert!(sending.acknowledged(1));
    assert!(!sending.acknowledged(1), "that is old");
    assert!(!sending.acknowledged(4), "that many were never sent");
    assert!(sending.has_room());
    assert!(!sending.refused(1));
    assert!(!sending.has_room(), "1 and 2 go first");
    assert_eq!(sending.send_again().map(|(number, packet)| (number, *packet)), Some((1, 1)));
    // The acknowledgement of packet 1 arrives before the next resend.
    assert!(sending.acknowledged(2));
    assert_eq!(sending.send_again().map(|(number, packet)| (number, *packet)), Some((2, 2)));
    assert!(sending.send_again().is_none() && sending.has_room());
    assert!(sending.refused(3) && sending.is_idle() && !sending.is_behind());
}

#[test]
fn patience_doubles_six_times_and_ends() {
    let mut sending = Sending::new(1, 8);
    sending.sent('a');
    let mut patience = Vec::new();
    while sending.expired() == Expired::Again {
        patience.push(sending.patience());
        while sending.send_again().is_some() {}
    }
    assert_eq!(patience, [2, 4, 8, 16, 32, 64, 64, 64]);
    assert!(sending.has_failed() && !sending.is_behind());
    assert_eq!(sending.give_up().collect::<String>(), "a");
    assert!(!sending.is_acknowledged(0));
    // Progress resets the count.
    let mut sending = Sending::new(1, 1);
    sending.sent(());
    assert_eq!(sending.expired(), Expired::Again);
    assert!(sending.acknowledged(1));
    sending.sent(());
    assert_eq!((sending.patience(), sending.expired()), (1, Expired::Again));
}
