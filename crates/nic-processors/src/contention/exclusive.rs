//! Words that one handler at a time holds, and the time held: locks, and turns of tickets.
//!
//! A handler *acquires* a word by an atomic operation that changes it and could have failed. It *releases* the word
//! by its next change. A handler that waits for its turn only loads the word before. Then it holds the word from its
//! first load of this value until it changes it. A further store of the same handler, before another handler changes
//! the word, belongs to the same hold. Any other change means that no handler holds the word: a counter, or several
//! locks in a word.
//!
//! Handlers may load a word and change it only if no other handler was faster. They do not hold it. Yet no other
//! change succeeds between the load and the change, so these times add up likewise.

use nicety_hpu::{Image, OrderPoint};
use nicety_types::{Duration, Time};
use std::collections::BTreeMap;

/// The effect of an access on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A load, including a load-reserved.
    Load,
    /// A store, or a write by a command.
    Store,
    /// An atomic addition, which cannot fail.
    Add,
    /// An atomic exchange.
    Swap,
    /// Another atomic operation, such as a store-conditional.
    Take,
}

impl Act {
    /// Returns the effect of the instruction at an ordering point on its word.
    pub(crate) fn of(point: &OrderPoint, image: &Image, pc: u32) -> Act {
        match *point {
            OrderPoint::Atomic { write: true, .. } if image.adds_at(pc) => Act::Add,
            OrderPoint::Atomic { write: true, .. } if image.swaps_at(pc) => Act::Swap,
            OrderPoint::Atomic { write: true, .. } => Act::Take,
            OrderPoint::Memory { write: true, .. } => Act::Store,
            OrderPoint::Atomic { .. } | OrderPoint::Memory { .. } | OrderPoint::Fence => Act::Load,
        }
    }
}

/// An access of a handler's run.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(crate) run: u64,
    pub(crate) pc: u32,
    pub(crate) now: Time,
    pub(crate) act: Act,
    /// Whether it has changed the word's value.
    pub(crate) changed: bool,
}

/// The handler that holds the word.
#[derive(Clone, Copy, Debug)]
struct Holder {
    run: u64,
    since: Time,
    pc: u32,
}

/// The use of a word by handlers, as long as one at a time holds it.
#[derive(Debug, Default)]
pub(crate) struct Exclusive {
    holder: Option<Holder>,
    /// The last change: its handler and its time.
    last: Option<(u64, Time)>,
    /// The first load of each handler since then.
    loaded: BTreeMap<u64, (Time, u32)>,
    /// Atomic operations that failed to change it.
    failed: u64,
    /// Whether a change was neither an acquisition nor a release.
    otherwise: bool,
    times: Times,
    /// Whether a change was by a handler that had not loaded the word, and whether one did not pass a turn on. If
    /// neither, each change passes a turn on, possibly by an exchange. If only the second, each change tries a value.
    not_loaded: bool,
    not_passed_on: bool,
    from_loads: Times,
}

/// The times for which a word was held.
#[derive(Debug, Default)]
struct Times {
    held: Duration,
    handed_over: Duration,
    /// Number of acquisitions and releases by pair of code addresses.
    places: BTreeMap<(u32, u32), u64>,
}

impl Times {
    fn releases(&mut self, (since, acquired): (Time, u32), now: Time, released: u32) {
        self.held += now.since(since);
        if self.places.len() < PAIRS || self.places.contains_key(&(acquired, released)) {
            *self.places.entry((acquired, released)).or_default() += 1;
        }
    }

    /// Counts a hand-over: a handler has held the word since `now`, the last change is `last`, and handlers have
    /// waited since `waited_since`.
    fn hands_over(&mut self, last: Option<(u64, Time)>, now: Time, waited_since: Option<Time>) {
        if let (Some((_, free)), Some(waited)) = (last, waited_since) {
            self.handed_over += now.saturating_since(free.max(waited));
        }
    }
}

/// Most pairs of code addresses that are distinguished, and most handlers with a known last load. The handlers that
/// began first are forgotten: they have long ended.
const PAIRS: usize = 64;
const LOADERS: usize = 4096;

/// The holds of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) held: Duration,
    /// The time for which it was free while a handler waited.
    pub(crate) handed_over: Duration,
    pub(crate) acquired_at: u32,
    pub(crate) released_at: u32,
    /// Failed attempts to acquire it.
    pub(crate) failed: u64,
}

impl Exclusive {
    /// Handles an access. `waited_since` is the start of the longest current wait for the word.
    pub fn see(&mut self, access: Access, waited_since: Option<Time>) {
        let Access { run, pc, now, act, changed } = access;
        if !changed {
            match act {
                Act::Load => {
                    self.loaded.entry(run).or_insert((now, pc));
                    if self.loaded.len() > LOADERS {
                        self.loaded.pop_first();
                    }
                }
                Act::Store => {}
                Act::Add | Act::Swap | Act::Take => self.failed += 1,
            }
            return;
        }
        let own = self.holder.filter(|holder| holder.run == run);
        let loaded = self.loaded.get(&run).copied();
        match loaded {
            Some((since, at)) => {
                self.from_loads.hands_over(self.last, since, waited_since);
                self.from_loads.releases((since, at), now, pc);
            }
            None => self.not_loaded |= self.last.is_some(),
        }
        match (act, own, self.holder) {
            (Act::Load, ..) => {}
            (Act::Store | Act::Swap | Act::Take, Some(own), _) => {
                self.times.releases((own.since, own.pc), now, pc)
            }
            // An addition by the holder, or a change by another handler.
            (Act::Add, Some(_), _) | (_, None, Some(_)) => self.otherwise = true,
            (Act::Swap | Act::Take, None, None) => self.times.hands_over(self.last, now, waited_since),
            (Act::Store | Act::Add, None, None) => match (loaded, self.last) {
                (Some((since, at)), _) => {
                    self.times.hands_over(self.last, since, waited_since);
                    self.times.releases((since, at), now, pc);
                }
                (None, Some((last, since))) if last == run && act == Act::Store => {
                    self.times.held += now.since(since)
                }
                // The first release may make it known.
                (None, None) => {}
                _ => self.otherwise = true,
            },
        }
        let acquires = matches!(act, Act::Swap | Act::Take) && own.is_none();
        self.not_passed_on |= act == Act::Take;
        self.holder = acquires.then_some(Holder { run, since: now, pc });
        self.last = Some((run, now));
        self.loaded.clear();
    }

    /// Returns the time for which it was held. None if it had another use.
    pub(crate) fn held(&self) -> Option<Held> {
        let times = match (self.otherwise, self.not_loaded || self.not_passed_on || self.failed > 0) {
            (false, _) => &self.times,
            (true, false) => &self.from_loads,
            (true, true) => return None,
        };
        let ((acquired_at, released_at), _) = times.places.iter().max_by_key(|(_, times)| **times)?;
        let Times { held, handed_over, .. } = *times;
        Some(Held {
            held,
            handed_over,
            acquired_at: *acquired_at,
            released_at: *released_at,
            failed: self.failed,
        })
    }

    /// Returns two times of a word that is changed if no other handler was faster. The first is from the loads on
    /// which changes rely to the changes. The second is the time without a load for the next change, while a handler
    /// waited. None if the word had another use.
    pub(crate) fn attempt_times(&self) -> Option<(Duration, Duration)> {
        let Times { held, handed_over, .. } = self.from_loads;
        (!self.not_loaded && !held.is_zero()).then_some((held, handed_over))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns picoseconds held and handed over, and the places. `accesses` are time, run, place, act, and whether
    /// the word changed. `waits` are a handler and the start of the wait that its accesses find.
    fn held(
        accesses: &[(u64, u64, u32, Act, bool)],
        waits: Option<(u64, u64)>,
    ) -> Option<(u64, u64, (u32, u32))> {
        let mut word = Exclusive::default();
        for &(ps, run, pc, act, changed) in accesses {
            let since = waits.filter(|(who, _)| *who == run).map(|(_, since)| Time::from_ps(since));
            word.see(Access { run, pc, now: Time::from_ps(ps), act, changed }, since);
        }
        word.held().map(|word| (word.held.ps(), word.handed_over.ps(), (word.acquired_at, word.released_at)))
    }

    const TAKE: u32 = 10;
    const GIVE: u32 = 20;

    #[test]
    fn a_lock_is_acquired_and_released() {
        let swap = [(100, 1, TAKE, Act::Take, true), (160, 1, GIVE, Act::Store, true)];
        assert_eq!(held(&swap, None), Some((60, 0, (TAKE, GIVE))));
        assert_eq!(held(&swap[..1], None), None);
        let again = [(300, 2, TAKE, Act::Take, true), (310, 2, GIVE, Act::Take, true)];
        assert_eq!(held(&[swap, again].concat(), None), Some((70, 0, (TAKE, GIVE))));
        // One attempt fails meanwhile, and one handler loads. The first waits from 120 on. The word is free from 160
        // until 300.
        let between = [(120, 2, TAKE, Act::Take, false), (130, 3, 30, Act::Load, false)];
        let all = [&swap[..1], &between, &swap[1..], &again].concat();
        assert_eq!(held(&all, Some((2, 120))), Some((70, 140, (TAKE, GIVE))));
        // A load-reserved, its store-conditional, and a store.
        let linked = [
            (100, 1, 9, Act::Load, false),
            (101, 1, TAKE, Act::Take, true),
            (150, 1, GIVE, Act::Store, true),
        ];
        assert_eq!(held(&linked, None), Some((49, 0, (TAKE, GIVE))));
        // Three states: a further store of the same handler.
        let third = [(190, 1, 21, Act::Store, true)];
        assert_eq!(held(&[&swap[..], &third].concat(), None), Some((90, 0, (TAKE, GIVE))));
    }

    #[test]
    fn the_turn_of_a_ticket_is_from_its_load_until_it_is_passed_on() {
        for act in [Act::Store, Act::Add] {
            let turn = [(100, 1, TAKE, Act::Load, false), (150, 1, GIVE, act, true)];
            assert_eq!(held(&turn, None), Some((50, 0, (TAKE, GIVE))));
            // Another handler waits from 110 on, and finds its turn at 155.
            let next = [(155, 2, TAKE, Act::Load, false), (180, 2, GIVE, act, true)];
            let waits = [(110, 2, TAKE, Act::Load, false)];
            let all = [&turn[..1], &waits, &turn[1..], &next].concat();
            assert_eq!(held(&all, Some((2, 110))), Some((50 + 25, 5, (TAKE, GIVE))));
        }
        // The word is known from its first release on.
        let known = [
            (150, 1, GIVE, Act::Store, true),
            (200, 2, TAKE, Act::Load, false),
            (230, 2, GIVE, Act::Store, true),
        ];
        assert_eq!(held(&known, None), Some((30, 0, (TAKE, GIVE))));
    }

    #[test]
    fn a_word_that_is_only_looked_at_takes_no_more_and_more_memory() {
        let mut word = Exclusive::default();
        for run in 0..2 * LOADERS as u64 {
            word.see(Access { run, pc: TAKE, now: Time::from_ps(run), act: Act::Load, changed: false }, None);
        }
        assert_eq!(word.loaded.len(), LOADERS);
    }

    #[test]
    fn a_turn_may_be_passed_on_by_an_exchange() {
        let turns = [
            (100, 1, TAKE, Act::Load, false),
            (105, 2, TAKE, Act::Load, false),
            (150, 1, GIVE, Act::Swap, true),
            (155, 2, TAKE, Act::Load, false),
            // A second load, for the value that it stores, does not restart the hold.
            (170, 2, 21, Act::Load, false),
            (190, 2, GIVE, Act::Swap, true),
        ];
        assert_eq!(held(&turns, Some((2, 105))), Some((50 + 35, 5, (TAKE, GIVE))));
        // A change by a handler that has not loaded, or after a failed change: no turns.
        let stranger = [(200, 3, GIVE, Act::Swap, true)];
        assert_eq!(held(&[&turns[..], &stranger].concat(), None), None);
        let failed = [(191, 3, GIVE, Act::Swap, false)];
        assert_eq!(held(&[&turns[..], &failed].concat(), None), None);
        // A store-conditional may have failed. So a value is tried.
        let conditional = turns.map(|(ps, run, pc, act, changed)| match act {
            Act::Swap => (ps, run, pc, Act::Take, changed),
            _ => (ps, run, pc, act, changed),
        });
        assert_eq!(held(&conditional, None), None);
    }

    #[test]
    fn a_value_that_is_tried_keeps_others_from_theirs() {
        let mut word = Exclusive::default();
        assert_eq!(word.attempt_times(), None);
        // Two handlers load it. The first changes it by a load-reserved of the loaded value and a store-conditional.
        // The other fails, and continues with the value that it finds.
        for (ps, run, act, changed) in [
            (100, 1, Act::Load, false),
            (102, 2, Act::Load, false),
            (120, 1, Act::Load, false),
            (121, 1, Act::Take, true),
            (124, 2, Act::Load, false),
            (140, 2, Act::Load, false),
            (141, 2, Act::Take, true),
        ] {
            let since = (run == 2).then(|| Time::from_ps(102));
            word.see(Access { run, pc: TAKE, now: Time::from_ps(ps), act, changed }, since);
        }
        assert_eq!(word.attempt_times(), Some((Duration::from_ps(21 + 17), Duration::from_ps(3))));
        // A counter is changed by a handler that has not loaded it.
        word.see(Access { run: 3, pc: GIVE, now: Time::from_ps(150), act: Act::Add, changed: true }, None);
        assert_eq!(word.attempt_times(), None);
    }

    #[test]
    fn counters_and_flags_are_no_locks() {
        let by = |runs: &[u64], act| -> Vec<_> {
            (100..).zip(runs).map(|(ps, run)| (ps, *run, TAKE, act, true)).collect()
        };
        // Each handler counts once or twice, or tries until no other handler was faster.
        for (runs, act) in [(&[1, 2, 3][..], Act::Add), (&[1, 1, 2, 2], Act::Add), (&[1, 2, 3], Act::Take)] {
            assert_eq!(held(&by(runs, act), None), None, "{runs:?} {act:?}");
        }
        // One sets it and another clears it, or one takes an item out and gives it back by an addition.
        for (run, act) in [(2, Act::Store), (1, Act::Add)] {
            assert_eq!(held(&[(100, 1, TAKE, Act::Take, true), (110, run, GIVE, act, true)], None), None);
        }
        // Two locks in a word.
        let two = [(100, 1, TAKE), (110, 2, TAKE), (150, 1, GIVE), (160, 2, GIVE)];
        assert_eq!(held(&two.map(|(ps, run, pc)| (ps, run, pc, Act::Take, true)), None), None);
    }
}
