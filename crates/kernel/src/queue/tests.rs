//! Compares a queue with a sorted map: the same events in the same order, for any pushes and cancellations.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Op {
    /// An own event of a node, at `after` from now.
    Push { after: u64, node: u32 },
    /// An arrival on a link.
    Arrive { after: u64, node: u32, link: u32 },
    /// Takes events that are due before `within` from now, up to a number of events.
    Pop { within: u64, at_most: usize },
    /// Cancels one of the own events, which may have happened.
    Cancel { which: usize },
    /// Changes the data of one of the own events.
    Retarget { which: usize },
    /// Takes the remaining events of the last event's node and instant.
    PopAt,
    /// Checks whether every event is after an own event of a node, at `after` from now.
    Ask { after: u64, node: u32 },
}

/// Returns durations of every scale of the wheel. Some of them are equal.
fn after() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 0..4u64,
        3 => 0..2_000u64,
        6 => 0..2_000_000u64,
        2 => (0..200u64).prop_map(|n| n * 10_000),
        2 => 0..6_000_000u64,
        2 => 0..20_000_000_000u64,
        1 => 0..1u64 << 50,
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (after(), 0..4u32).prop_map(|(after, node)| Op::Push { after, node }),
        3 => (after(), 0..4u32, 0..3u32).prop_map(|(after, node, link)| Op::Arrive { after, node, link }),
        6 => (after(), 1..20usize).prop_map(|(within, at_most)| Op::Pop { within, at_most }),
        3 => any::<usize>().prop_map(|which| Op::Cancel { which }),
        1 => any::<usize>().prop_map(|which| Op::Retarget { which }),
        1 => Just(Op::PopAt),
        4 => (after(), 0..4u32).prop_map(|(after, node)| Op::Ask { after, node }),
    ]
}

/// A queue and its expected state.
struct Pair {
    queue: Queue,
    reference: BTreeMap<Key, u64>,
    now: u64,
    last: Option<Key>,
    count: u64,
    own: Vec<(EventRef, Key)>,
}

impl Pair {
    fn new(kind: QueueKind) -> Pair {
        let (queue, reference, own) = (Queue::new(kind), BTreeMap::new(), Vec::new());
        Pair { queue, reference, now: 0, last: None, count: 0, own }
    }

    fn push(&mut self, key: Key) -> EventRef {
        let data = self.count * 3;
        self.reference.insert(key, data);
        self.queue.push(key, data)
    }

    fn pop_before(&mut self, limit: u64) -> bool {
        let expected = self.reference.first_key_value().map(|(k, d)| (*k, *d));
        let expected = expected.filter(|(key, _)| key.time().ps() < limit);
        assert_eq!(self.queue.pop_before(Time::from_ps(limit)), expected);
        let Some((key, _)) = expected else { return false };
        self.reference.remove(&key);
        (self.now, self.last) = (key.time().ps(), Some(key));
        true
    }

    fn apply(&mut self, op: Op) {
        self.count += 1;
        match op {
            Op::Push { after, node } => {
                let key = Key::own(Time::from_ps(self.now + after), NodeId(node), self.count);
                let event = self.push(key);
                self.own.push((event, key));
            }
            Op::Arrive { after, node, link } => {
                let time = Time::from_ps(self.now + after);
                self.push(Key::arrival(time, NodeId(node), LinkId(link), self.count));
            }
            Op::Pop { within, at_most } => {
                let limit = self.now.saturating_add(within);
                for _ in 0..at_most {
                    if !self.pop_before(limit) {
                        break;
                    }
                }
            }
            Op::Cancel { which } if !self.own.is_empty() => {
                let (event, key) = self.own[which % self.own.len()];
                let pending = self.reference.remove(&key).is_some();
                assert_eq!(self.queue.cancel(event), pending);
            }
            Op::Retarget { which } if !self.own.is_empty() => {
                let (event, key) = self.own[which % self.own.len()];
                self.queue.retarget(event, 1);
                if let Some(data) = self.reference.get_mut(&key) {
                    *data = 1;
                }
            }
            Op::PopAt => {
                let Some(last) = self.last else { return };
                let expected = self.reference.first_key_value().map(|(k, d)| (*k, *d));
                let expected =
                    expected.filter(|(key, _)| key.time() == last.time() && key.node() == last.node());
                // The shard calls this only directly after an event, and before it takes any later event.
                assert_eq!(self.queue.pop_at(last.time(), last.node()), expected);
                expected.map(|(key, _)| self.reference.remove(&key));
            }
            Op::Ask { after, node } => {
                let key = Key::own(Time::from_ps(self.now + after), NodeId(node), self.count);
                let comes_after = self.reference.first_key_value().is_none_or(|(first, _)| *first > key);
                let told = self.queue.comes_after(key);
                // The queue may miss the answer if the key is far ahead.
                assert!(told == comes_after || !told && after > 2_000_000);
            }
            Op::Cancel { .. } | Op::Retarget { .. } => (),
        }
        let next = self.reference.first_key_value().map(|(key, _)| key.time());
        assert_eq!(self.queue.next_time(), next);
    }

    fn drain(&mut self) {
        while self.pop_before(u64::MAX) {}
        assert!(self.reference.is_empty());
        assert_eq!(self.queue.events().live, 0);
    }
}

/// Number of random cases: `usual`, or more if `PROPTEST_CASES` asks for a long run.
fn cases(usual: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    // The default is PROPTEST_CASES, or 256 without it.
    ProptestConfig { cases: usual.max(default.cases), ..default }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn a_queue_is_a_sorted_map(ops in proptest::collection::vec(op(), 1..400)) {
        for kind in [QueueKind::Wheel, QueueKind::BinaryHeap] {
            let mut pair = Pair::new(kind);
            for op in ops.clone() {
                pair.apply(op);
            }
            pair.drain();
        }
    }
}

#[test]
fn a_crowd_in_one_bucket_and_late_comers_to_it_stay_in_order() {
    let mut pair = Pair::new(QueueKind::Wheel);
    for i in 0..500 {
        pair.apply(Op::Push { after: 5_000 + i * 7 % 300, node: (i % 3) as u32 });
    }
    for i in 0..2_000 {
        pair.apply(Op::Pop { within: 1_000_000, at_most: 1 });
        if i < 800 {
            pair.apply(Op::Push { after: i * 31 % 200, node: 1 });
        }
        if i % 3 == 0 {
            pair.apply(Op::Cancel { which: pair.own.len() - 1 - (i as usize % 50) });
        }
    }
    pair.drain();
}

#[test]
fn cancelled_timeouts_do_not_pile_up() {
    for kind in [QueueKind::Wheel, QueueKind::BinaryHeap] {
        for after in [1, 900, 100_000, 100_000_000, 1 << 50] {
            let mut pair = Pair::new(kind);
            pair.apply(Op::Push { after: 0, node: 0 }); // first, so that `head` does not find the cancelled events
            for i in 1..10_000 {
                pair.apply(Op::Push { after, node: 0 });
                pair.apply(Op::Cancel { which: i });
            }
            let slots = pair.queue.events().slots.len();
            assert!(slots < 300, "{kind:?}, {after} ps: {slots} slots for one event at a time");
            pair.drain();
        }
    }
}

#[test]
fn events_of_the_next_buckets_are_seen_once_for_each_current_one() {
    fn seen(wheel: &mut Wheel, buckets: usize) -> (bool, Vec<(usize, u64)>) {
        let mut seen = Vec::new();
        let most = wheel.coming(buckets, |_, data, place| seen.push((place, data)));
        seen.sort_unstable();
        (most, seen)
    }
    let mut count = 0;
    let mut push = |wheel: &mut Wheel, ps: u64, data: u64| {
        count += 1;
        wheel.push(Key::arrival(Time::from_ps(ps), NodeId(0), LinkId(0), count), data);
    };
    let mut wheel = Wheel::new();
    push(&mut wheel, 5 << 10, 5);
    assert_eq!(seen(&mut wheel, 4), (true, vec![]), "nothing is noted before it is asked for");
    // Puts events into buckets 1, 3 (three events), 7 and 3000.
    for (ps, data) in
        [(1024, 1), (3 << 10, 31), (3 << 10, 32), ((3 << 10) + 5, 33), (7 << 10, 7), (3000 << 10, 3000)]
    {
        push(&mut wheel, ps, data);
    }
    wheel.push(Key::own(Time::from_ps(7 << 10), NodeId(0), 1), 70);
    assert_eq!(seen(&mut wheel, 4), (true, vec![]), "there is no current bucket yet");
    assert_eq!(wheel.pop_before(Time::MAX).map(|event| event.1), Some(1));
    let next = vec![(1, 31), (1, 32), (1, 33), (3, 7), (3, 70)];
    assert_eq!(seen(&mut wheel, 4), (true, next), "none of the last bucket");
    assert_eq!(seen(&mut wheel, 4), (true, vec![]));
    assert_eq!(wheel.pop_before(Time::MAX).map(|event| event.1), Some(31));
    assert_eq!(seen(&mut wheel, 9).1, [(2, 7), (2, 70), (3, 3000)], "and not round the circle again");
    for _ in 0..5 {
        wheel.pop_before(Time::MAX);
    }
    assert_eq!(wheel.pop_before(Time::MAX).map(|event| event.1), Some(3000));
    push(&mut wheel, (4096 + 1) << 10, 10);
    push(&mut wheel, (4096 + 9) << 10, 11);
    seen(&mut wheel, 4);
    push(&mut wheel, 3001 << 10, 12);
    assert_eq!(wheel.pop_before(Time::MAX).map(|event| event.1), Some(12));
    assert_eq!(seen(&mut wheel, 4).1, [(1, 10), (2, 11)], "a list begins anew once it is emptied");

    let mut wheel = Wheel::new();
    seen(&mut wheel, 4);
    for data in 0..40 {
        push(&mut wheel, 2 << 10, data);
    }
    push(&mut wheel, 1024, 1);
    assert_eq!(wheel.pop_before(Time::MAX).map(|event| event.1), Some(1));
    assert_eq!(seen(&mut wheel, 2), (true, (0..32).map(|data| (1, data)).collect()));
    wheel.pop_before(Time::MAX);
    assert!(!seen(&mut wheel, 2).0, "forty are too many");
}
