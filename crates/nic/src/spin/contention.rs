//! Words that handlers wait for: locks, tickets, counters that a compare and swap has missed.
//!
//! Every atomic access of a handler to memory that others share comes by here, and from the first one on every other
//! access to that word: all of them are ordering points, so each is seen at its own cycle. What is counted follows from
//! what is seen, whatever the code looks like:
//!
//! - A handler *waits* for a word where it comes to it again from the same place, and found it as it could not use it
//!   the time before: nothing was changed by that access.
//! - An *interval* of a word is the time from one change of its value to the next. A place in the code whose change
//!   others then found in the way takes the word, and the interval until the next change is how long it is *held*. It was
//!   in the way of an operation that was to change the word and did not, and of a look that was repeated at once.
//!   Any other place gives it back, and while somebody waits, the interval until the next change is the *hand-over*.
//!
//! What is held cannot be held twice, so a word bounds the rate of all handlers together, however many processors there
//! are: to one packet in the time for which a packet holds it.

use super::refusals::place;
use nicety_hpu::Image;
use nicety_types::{Duration, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Most words that are watched and handlers that are known at one, and most places that are told apart at each.
const WORDS: usize = 4096;
const PLACES: usize = 64;

/// A word that handlers of several processors can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    /// In the card's HPU memory, where it lies there.
    Hpu(u32),
    /// In host memory.
    Host(u64),
}

/// What handlers waited for a word came to, in a whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitedWord {
    /// Which word: `byte 8 of the state`.
    pub word: String,
    /// The line that takes it.
    pub taken_at: String,
    /// The line that gives it back, where that is another.
    pub given_back_at: Option<String>,
    /// The line that waits for it.
    pub waited_at: String,
    /// How many times a handler has waited.
    pub waits: u64,
    /// How long it was held in all.
    pub held: Duration,
    /// How long nobody held it though somebody waited, in all.
    pub handed_over: Duration,
}

/// A handler that has come to a word and left it as it was: it cannot use it so, or has only looked at it.
#[derive(Debug)]
struct Attempt {
    word: Word,
    /// From where it has come to the word.
    places: Vec<u32>,
    since: Time,
    /// From where the last time, and whose change it has found there.
    last: u32,
    found: Option<u32>,
    /// Whether it has come back.
    waits: bool,
}

/// The intervals that begin with a change at one place.
#[derive(Debug, Default)]
struct Begun {
    place: String,
    all: Duration,
    /// The parts of them in which somebody waited.
    wanted: Duration,
    /// How many times it was in the way of somebody who waits.
    in_the_way: u64,
    /// Where they ended, how many times.
    ended: BTreeMap<u32, u64>,
}

#[derive(Debug)]
struct State {
    name: String,
    /// When its value last changed, and where; nowhere before the first time.
    since: Time,
    by: Option<u32>,
    begun: BTreeMap<Option<u32>, Begun>,
    /// Who waits, and since when.
    waiting: Vec<(u64, Time)>,
    waits: u64,
    /// Where they wait: how many times they came back, and the line.
    waited_at: BTreeMap<u32, (u64, String)>,
}

/// An access to a word.
pub(super) struct Seen<'i> {
    pub(super) word: Word,
    /// Whose: no two handlers have the same number.
    pub(super) run: u64,
    pub(super) image: &'i Image,
    pub(super) pc: u32,
    pub(super) now: Time,
    /// Whether it has changed the word's value.
    pub(super) changed: bool,
    /// Whether it was to change it, as every atomic operation but LR is.
    pub(super) changing: bool,
}

/// The words of a card that handlers may wait for.
#[derive(Debug, Default)]
pub(super) struct Contention {
    words: RefCell<BTreeMap<Word, State>>,
    /// Of each handler that has come to a word the last time that it did.
    attempts: RefCell<BTreeMap<u64, Attempt>>,
}

impl Contention {
    /// A handler has come to a word, which is called so.
    pub(super) fn see(&self, seen: &Seen<'_>, name: impl FnOnce() -> String) {
        if self.attempts.borrow().get(&seen.run).is_some_and(|attempt| attempt.word != seen.word) {
            self.goes_on(seen.run);
        }
        let mut words = self.words.borrow_mut();
        if words.len() >= WORDS && !words.contains_key(&seen.word) {
            return;
        }
        let state = words.entry(seen.word).or_insert_with(|| State::new(name()));
        let mut attempts = self.attempts.borrow_mut();
        if let Some(attempt) = attempts.get_mut(&seen.run) {
            state.look_back(seen, attempt);
        }
        if seen.changing && !seen.changed {
            state.begun.entry(state.by).or_default().in_the_way += 1;
        }
        if seen.changed {
            attempts.remove(&seen.run);
            state.change(seen);
            state.waiting.retain(|&(run, _)| run != seen.run);
        } else if attempts.len() < WORDS || attempts.contains_key(&seen.run) {
            let attempt = attempts.entry(seen.run).or_insert_with(|| Attempt {
                word: seen.word,
                places: Vec::new(),
                since: seen.now,
                last: seen.pc,
                found: None,
                waits: false,
            });
            if !attempt.places.contains(&seen.pc) && attempt.places.len() < PLACES {
                attempt.places.push(seen.pc);
            }
            (attempt.last, attempt.found) = (seen.pc, state.by);
        }
    }

    /// A handler does something else, or has ended: it waits no longer.
    pub(super) fn goes_on(&self, run: u64) {
        let Some(attempt) = self.attempts.borrow_mut().remove(&run) else { return };
        if attempt.waits
            && let Some(state) = self.words.borrow_mut().get_mut(&attempt.word)
        {
            state.waiting.retain(|&(other, _)| other != run);
        }
    }

    /// Bytes are written to host memory without looking at them: words that are known there have changed.
    pub(super) fn written(&self, seen: &Seen<'_>, address: u64, length: u64) {
        let last = Word::Host(address.saturating_add(length));
        let words: Vec<Word> =
            self.words.borrow().range(Word::Host(address)..last).map(|(word, _)| *word).collect();
        for word in words {
            self.see(&Seen { word, ..*seen }, String::new);
        }
    }

    /// The words that handlers have waited for, those that were occupied longest first.
    pub(super) fn list(&self) -> Vec<WaitedWord> {
        let words = self.words.borrow();
        let mut found: Vec<WaitedWord> = words.values().filter_map(State::waited).collect();
        found.sort_by_key(|word| std::cmp::Reverse(word.held + word.handed_over));
        found
    }
}

impl State {
    fn new(name: String) -> State {
        State {
            name,
            since: Time::ZERO,
            by: None,
            begun: BTreeMap::new(),
            waiting: Vec::new(),
            waits: 0,
            waited_at: BTreeMap::new(),
        }
    }

    /// A handler that comes back to where it was has waited since it first came.
    fn look_back(&mut self, seen: &Seen<'_>, attempt: &mut Attempt) {
        if !attempt.places.contains(&seen.pc) {
            return;
        }
        if !attempt.waits {
            attempt.waits = true;
            self.waits += 1;
            self.waiting.push((seen.run, attempt.since));
        }
        if self.waited_at.len() < PLACES || self.waited_at.contains_key(&seen.pc) {
            let new = || (0, place(seen.image, seen.pc));
            self.waited_at.entry(seen.pc).or_insert_with(new).0 += 1;
        }
        // A look that is repeated at once has found what it waits for to end; one after which the handler goes elsewhere,
        // a free lock perhaps.
        if attempt.last == seen.pc && !seen.changing {
            self.begun.entry(attempt.found).or_default().in_the_way += 1;
        }
    }

    /// Its value changes: an interval ends and another begins.
    fn change(&mut self, seen: &Seen<'_>) {
        let wanted = self.waiting.iter().map(|&(_, since)| since).min();
        let begun = self.begun.entry(self.by).or_default();
        begun.all += seen.now.since(self.since);
        begun.wanted += wanted.map_or(Duration::ZERO, |wanted| seen.now.since(self.since.max(wanted)));
        *begun.ended.entry(seen.pc).or_default() += 1;
        self.since = seen.now;
        self.by = (self.begun.len() < PLACES || self.begun.contains_key(&Some(seen.pc))).then_some(seen.pc);
        let next = self.begun.entry(self.by).or_default();
        if next.place.is_empty() {
            next.place = place(seen.image, seen.pc);
        }
    }

    /// What it came to, where anybody has waited.
    fn waited(&self) -> Option<WaitedWord> {
        let takes = |begun: &Begun| begun.in_the_way > 0;
        let held_most = self.begun.values().filter(|begun| takes(begun)).max_by_key(|begun| begun.all)?;
        let changes = self.begun.iter().filter(|(by, _)| by.is_some()).map(|(_, begun)| begun);
        // Where every change is in somebody's way, as those of a ticket are, only waiting tells held from free.
        let told_apart = changes.clone().any(|begun| !takes(begun) && !begun.all.is_zero());
        let held = |begun: &Begun| match told_apart {
            true => begun.all,
            false => begun.wanted,
        };
        let place_of = |pc: u32| {
            let known = self.begun.get(&Some(pc)).map(|begun| begun.place.clone());
            known.filter(|place| !place.is_empty())
        };
        let ended = held_most.ended.iter().max_by_key(|(_, times)| **times);
        let given_back = ended.and_then(|(pc, _)| place_of(*pc));
        let (_, waited_at) = self.waited_at.values().max_by_key(|(times, _)| *times)?;
        Some(WaitedWord {
            word: self.name.clone(),
            taken_at: held_most.place.clone(),
            given_back_at: given_back.filter(|place| *place != held_most.place),
            waited_at: waited_at.clone(),
            waits: self.waits,
            held: self.begun.values().filter(|begun| takes(begun)).map(held).sum(),
            handed_over: match told_apart {
                true => self.begun.values().filter(|begun| !takes(begun)).map(|begun| begun.wanted).sum(),
                false => Duration::ZERO,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_hpu::Core;
    use std::sync::Arc;

    /// Handlers that come to one word.
    struct Rig {
        contention: Contention,
        image: Arc<Image>,
    }

    const TAKE: u32 = 0x100;
    const GIVE: u32 = 0x200;
    const LOOK: u32 = 0x300;

    impl Rig {
        fn new() -> Rig {
            let image = Image::from_words(0, &[], &Core::default());
            Rig { contention: Contention::default(), image }
        }

        fn at(&self, ps: u64, run: u64, pc: u32, changed: bool) {
            let (word, now) = (Word::Hpu(0), Time::from_ps(ps));
            let seen = Seen { word, run, image: &self.image, pc, now, changed, changing: pc == TAKE };
            self.contention.see(&seen, || "a word".to_owned());
        }

        fn held(&self) -> Option<(u64, u64, u64)> {
            let list = self.contention.list();
            assert!(list.len() <= 1);
            list.first().map(|word| (word.waits, word.held.ps(), word.handed_over.ps()))
        }
    }

    #[test]
    fn a_lock_that_nobody_waits_for_is_none() {
        let rig = Rig::new();
        for n in 0..10 {
            rig.at(100 * n, n, TAKE, true);
            rig.at(100 * n + 60, n, GIVE, true);
        }
        assert_eq!(rig.held(), None);
    }

    #[test]
    fn a_lock_is_held_and_handed_over() {
        let rig = Rig::new();
        rig.at(1000, 1, TAKE, true);
        rig.at(1010, 2, TAKE, false);
        rig.at(1030, 2, TAKE, false);
        rig.at(1040, 1, GIVE, true);
        rig.at(1050, 2, TAKE, true);
        rig.at(1090, 2, GIVE, true);
        // Nobody waits: free, and not handed over. And held all the same.
        rig.at(2000, 1, TAKE, true);
        rig.at(2007, 1, GIVE, true);
        assert_eq!(rig.held(), Some((1, 40 + 40 + 7, 10)));
        let word = &rig.contention.list()[0];
        assert_eq!(
            (&*word.taken_at, word.given_back_at.as_deref()),
            ("pc 0x00000100", Some("pc 0x00000200"))
        );
    }

    #[test]
    fn who_does_not_come_back_has_not_waited() {
        let rig = Rig::new();
        rig.at(1000, 1, TAKE, true);
        rig.at(1010, 2, TAKE, false);
        rig.contention.goes_on(2);
        rig.at(1020, 2, LOOK, false);
        rig.at(1040, 1, GIVE, true);
        assert_eq!(rig.held(), None);
    }

    /// LR, then SC that another's store has broken: what is in the way is that store, not what LR found.
    #[test]
    fn a_reservation_that_is_lost_was_lost_to_who_took_the_word() {
        let rig = Rig::new();
        let (lr, sc) = (LOOK, TAKE);
        rig.at(900, 3, sc, true);
        rig.at(1000, 3, GIVE, true);
        rig.at(1010, 1, lr, false);
        rig.at(1011, 2, lr, false);
        rig.at(1012, 1, sc, true);
        rig.at(1013, 2, sc, false);
        rig.at(1014, 2, lr, false);
        rig.at(1050, 1, GIVE, true);
        rig.at(1054, 2, lr, false);
        rig.at(1056, 2, sc, true);
        rig.at(1060, 2, GIVE, true);
        assert_eq!(rig.held(), Some((1, 100 + 38 + 4, 6)));
    }

    /// Every change is in somebody's way: what is occupied is what is waited for.
    #[test]
    fn a_ticket_is_occupied_while_somebody_waits() {
        let rig = Rig::new();
        rig.at(1000, 1, LOOK, false);
        rig.at(1000, 2, LOOK, false);
        rig.at(1010, 2, LOOK, false);
        rig.at(1040, 1, GIVE, true);
        rig.at(1041, 3, LOOK, false);
        rig.at(1045, 2, LOOK, false);
        rig.at(1046, 3, LOOK, false);
        rig.at(1080, 2, GIVE, true);
        rig.at(1085, 3, LOOK, false);
        rig.at(1120, 3, GIVE, true);
        rig.at(9000, 4, GIVE, true);
        assert_eq!(rig.held(), Some((2, 40 + 40 + 40, 0)));
    }
}
