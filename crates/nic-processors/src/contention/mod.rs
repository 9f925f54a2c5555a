//! Words of memory that handlers wait for: locks, tickets, counters of a failed compare-and-swap.
//!
//! The module sees every atomic access of a handler to shared memory, and after the first one every other access to
//! that word. All of them are ordering points, each at its own cycle. A handler *waits* for a word when it accesses
//! the word again from the same code address, and its last access changed nothing. `exclusive.rs` finds the time for
//! which one handler at a time holds a word.
//!
//! A word that handlers wait for and hold one at a time bounds the rate of all handlers. With any number of
//! processors, they take one packet per hold.

pub mod exclusive;

use crate::commands::refusals::place;
use crate::spec::Level;
use exclusive::{Access, Act, Exclusive, Held};
use nicety_hpu::Image;
use nicety_types::{Duration, Time};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Most watched words, most handlers that may wait, and most code addresses distinguished at a word.
const WORDS: usize = 1 << 16;
const PLACES: usize = 64;

/// A word that handlers on several processors can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    /// Address in the card's HPU memory.
    Hpu(u32),
    /// Address in host memory.
    Host(u64),
}

/// The contention for a word in a whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldWord {
    /// The word, such as `byte 8 of the state`.
    pub word: String,
    /// The source line that takes it.
    pub acquired_line: String,
    /// The source line that releases it, if it differs.
    pub released_line: Option<String>,
    /// The source line that waits for it, or would wait.
    pub waited_at: String,
    /// Number of waits. Zero where handlers did not contend.
    pub waits: u64,
    /// Total time of these waits, from the first access of each to the last.
    pub waited: Duration,
    /// The variable of the program, such as `lock` or `table+8`, if it is in one.
    pub variable: Option<String>,
    /// Total time held.
    pub held: Duration,
    /// Total time for which it was free while a handler waited.
    pub handed_over: Duration,
}

/// A word that handlers retry and that is no lock: a counter that others change meanwhile, or a flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetriedWord {
    /// The word, such as `byte 8 of the state`.
    pub word: String,
    /// The source line that retries most often.
    pub retried_at: String,
    /// Number of its retries.
    pub retries: u64,
    /// Total time from the loads on which changes rely to the changes, in which no other change succeeds. Zero unless
    /// each change follows a load by the same handler.
    pub changing: Duration,
    /// Total time without a load for the next change, while a handler tried.
    pub handed_over: Duration,
}

/// A word of HPU memory that is a target of atomic operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtomicWord {
    /// The word, such as `byte 8 of the state`.
    pub word: String,
    /// The level of its memory.
    pub level: Level,
    /// Accesses to it from the first atomic operation on, including loads and stores.
    pub accesses: u64,
}

/// A handler with a last access that left the word unchanged: a failed acquisition, or only a load.
#[derive(Debug)]
struct Attempt {
    word: Word,
    /// The code addresses from which it has accessed the word.
    places: Vec<u32>,
    since: Time,
    last: Time,
    /// Whether it has retried.
    waits: bool,
    /// Earlier changes of the word.
    changes: u64,
}

#[derive(Debug)]
struct State {
    name: String,
    exclusive: Exclusive,
    /// Waiting handlers, and the start of each wait.
    waiting: Vec<(u64, Time)>,
    waits: u64,
    waited: Duration,
    accesses: u64,
    /// Changes of its value.
    changes: u64,
    /// Code addresses of waits, with their number.
    waited_at: BTreeMap<u32, u64>,
    /// The source lines of accesses.
    lines: BTreeMap<u32, String>,
}

/// An access to a word.
pub struct ObservedAccess<'i> {
    /// The word.
    pub word: Word,
    /// The unique number of the handler's run.
    pub run: u64,
    /// The handler's program, and the address of the instruction.
    pub image: &'i Image,
    /// The address of the instruction.
    pub pc: u32,
    /// The time of the access.
    pub now: Time,
    /// The kind of the access.
    pub act: Act,
    /// Whether it has changed the word's value.
    pub changed: bool,
}

/// The contended words of a card.
#[derive(Debug, Default)]
pub struct Contention {
    words: RefCell<BTreeMap<Word, State>>,
    /// The last access of each handler that left a word unchanged.
    attempts: RefCell<BTreeMap<u64, Attempt>>,
    /// Whether an atomic operation could have failed, or exchanged a word.
    takes: Cell<bool>,
}

impl Contention {
    /// Handles an access of a handler to a word with this name.
    pub fn see(&self, seen: &ObservedAccess<'_>, name: impl FnOnce() -> String) {
        if self.attempts.borrow().get(&seen.run).is_some_and(|attempt| attempt.word != seen.word) {
            self.goes_on(seen.run);
        }
        self.takes.set(self.takes.get() || matches!(seen.act, Act::Swap | Act::Take));
        let mut words = self.words.borrow_mut();
        if words.len() >= WORDS && !words.contains_key(&seen.word) {
            return;
        }
        let state = words.entry(seen.word).or_insert_with(|| State::new(name()));
        state.accesses += 1;
        state.note(seen);
        let mut attempts = self.attempts.borrow_mut();
        if let Some(attempt) = attempts.get_mut(&seen.run) {
            state.look_back(seen, attempt);
        }
        let waited_since = state.waiting.iter().map(|&(_, since)| since).min();
        let &ObservedAccess { run, pc, now, act, changed, .. } = seen;
        state.exclusive.see(Access { run, pc, now, act, changed }, waited_since);
        state.changes += u64::from(changed);
        if changed {
            attempts.remove(&run);
            state.wait_ends(run, now);
        } else if attempts.len() < WORDS || attempts.contains_key(&run) {
            let attempt = attempts.entry(run).or_insert_with(|| Attempt {
                word: seen.word,
                places: Vec::new(),
                since: now,
                last: now,
                waits: false,
                changes: state.changes,
            });
            attempt.last = now;
            if !attempt.places.contains(&pc) && attempt.places.len() < PLACES {
                attempt.places.push(pc);
            }
        }
    }

    /// Returns a description of the word that a handler waits for in vain. None if it waits for none.
    pub(crate) fn in_vain(&self, run: u64) -> Option<String> {
        let (attempts, words) = (self.attempts.borrow(), self.words.borrow());
        let attempt = attempts.get(&run).filter(|attempt| attempt.waits)?;
        let State { name, changes, .. } = words.get(&attempt.word)?;
        Some(match *changes == attempt.changes {
            true => format!("it waits for {name}, which no other handler has changed since"),
            false => format!(
                "it waits for {name}, which others keep changing: their order is undefined, so the wait may \
                 never end; a ticket lock serves handlers in order of arrival"
            ),
        })
    }

    /// Ends the wait of a handler that proceeds or has ended.
    pub fn goes_on(&self, run: u64) {
        let Some(attempt) = self.attempts.borrow_mut().remove(&run) else { return };
        if attempt.waits
            && let Some(state) = self.words.borrow_mut().get_mut(&attempt.word)
        {
            state.wait_ends(run, attempt.last);
        }
    }

    /// Handles a blind write to host memory: watched words there have changed.
    pub fn written(&self, seen: &ObservedAccess<'_>, address: u64, length: u64) {
        let last = Word::Host(address.saturating_add(length));
        let words: Vec<Word> =
            self.words.borrow().range(Word::Host(address)..last).map(|(word, _)| *word).collect();
        for word in words {
            self.see(&ObservedAccess { word, ..*seen }, String::new);
        }
    }

    /// Returns the words that handlers hold one at a time, by the time held. Words without waits may have had another
    /// use. `variable` names the variable at a place of HPU memory.
    pub(crate) fn list(&self, variable: impl Fn(u32) -> Option<String>) -> Vec<HeldWord> {
        let words = self.words.borrow();
        let of = |(word, state): (&Word, &State)| {
            let variable = match word {
                Word::Hpu(place) => variable(*place),
                Word::Host(_) => None,
            };
            Some(HeldWord { variable, ..state.held()? })
        };
        let mut found: Vec<HeldWord> = words.iter().filter_map(of).collect();
        found.sort_by_key(|word| std::cmp::Reverse(word.held + word.handed_over));
        found
    }

    /// Returns the words of HPU memory that are targets of atomic operations, those with the most accesses first.
    /// `level` returns the level of a word.
    pub(crate) fn atomic_words(&self, level: impl Fn(u32) -> Level) -> Vec<AtomicWord> {
        let of = |(word, state): (&Word, &State)| match word {
            Word::Hpu(place) => {
                Some(AtomicWord { word: state.name.clone(), level: level(*place), accesses: state.accesses })
            }
            Word::Host(_) => None,
        };
        let mut found: Vec<AtomicWord> = self.words.borrow().iter().filter_map(of).collect();
        found.sort_by_key(|word| std::cmp::Reverse(word.accesses));
        found
    }

    /// Returns whether handlers take words, so that others may wait or retry.
    pub(crate) fn takes(&self) -> bool {
        self.takes.get()
    }

    /// Returns the word that handlers retried most often, among the words that are no locks.
    pub(crate) fn retried(&self) -> Option<RetriedWord> {
        let words = self.words.borrow();
        words.values().filter_map(State::retried).max_by_key(|word| word.retries)
    }
}

impl State {
    pub fn new(name: String) -> State {
        State {
            name,
            exclusive: Exclusive::default(),
            waiting: Vec::new(),
            waits: 0,
            waited: Duration::ZERO,
            accesses: 0,
            changes: 0,
            waited_at: BTreeMap::new(),
            lines: BTreeMap::new(),
        }
    }

    fn note(&mut self, seen: &ObservedAccess<'_>) {
        if self.lines.len() < PLACES {
            self.lines.entry(seen.pc).or_insert_with(|| place(seen.image, seen.pc));
        }
    }

    /// Ends the wait of a handler, if it waits.
    fn wait_ends(&mut self, run: u64, now: Time) {
        for (_, since) in self.waiting.extract_if(.., |&mut (other, _)| other == run) {
            self.waited += now.since(since);
        }
    }

    /// Counts a wait of a handler that returns to the same code address. It has waited since its first access.
    fn look_back(&mut self, seen: &ObservedAccess<'_>, attempt: &mut Attempt) {
        if !attempt.places.contains(&seen.pc) {
            return;
        }
        if !std::mem::replace(&mut attempt.waits, true) {
            self.waits += 1;
            self.waiting.push((seen.run, attempt.since));
        }
        if self.waited_at.len() < PLACES || self.waited_at.contains_key(&seen.pc) {
            *self.waited_at.entry(seen.pc).or_default() += 1;
        }
    }

    fn retried(&self) -> Option<RetriedWord> {
        let (most, times) = self.waited_at.iter().max_by_key(|(_, times)| **times)?;
        if self.held().is_some() {
            return None;
        }
        let (changing, handed_over) = self.exclusive.attempt_times().unwrap_or_default();
        Some(RetriedWord {
            changing,
            handed_over,
            word: self.name.clone(),
            retried_at: self.lines.get(most).cloned()?,
            // A handler that loads and then changes the word returns to both code addresses.
            retries: *times,
        })
    }

    /// Returns the lock that the word is, or may be. If some handlers failed to acquire it and none has waited, it
    /// holds nobody up.
    fn held(&self) -> Option<HeldWord> {
        let Held { held, handed_over, acquired_at, released_at, failed } = self.exclusive.held()?;
        if self.waits == 0 && failed > 0 {
            return None;
        }
        let waited_at =
            self.waited_at.iter().max_by_key(|(_, times)| **times).map_or(acquired_at, |(pc, _)| *pc);
        let line = |pc| self.lines.get(&pc).cloned();
        let acquired_line = line(acquired_at)?;
        Some(HeldWord {
            word: self.name.clone(),
            released_line: line(released_at).filter(|line| *line != acquired_line),
            waited_at: line(waited_at)?,
            acquired_line,
            waits: self.waits,
            waited: self.waited,
            variable: None,
            held,
            handed_over,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicety_hpu::Core;
    use std::sync::Arc;

    /// A test set-up of handlers that access one word.
    struct Rig {
        contention: Contention,
        image: Arc<Image>,
    }

    const TAKE: u32 = 0x100;
    const GIVE: u32 = 0x200;
    const LOOK: u32 = 0x300;

    impl Rig {
        pub fn new() -> Rig {
            let image = Image::from_words(0, &[], &Core::default());
            Rig { contention: Contention::default(), image }
        }

        pub fn at(&self, ps: u64, run: u64, pc: u32, changed: bool) {
            let (word, now) = (Word::Hpu(0), Time::from_ps(ps));
            let act = match pc {
                TAKE => Act::Take,
                GIVE => Act::Store,
                _ => Act::Load,
            };
            let seen = ObservedAccess { word, run, image: &self.image, pc, now, act, changed };
            self.contention.see(&seen, || "a word".to_owned());
        }

        fn held(&self) -> Option<(u64, u64, u64)> {
            let list = self.contention.list(|_| None);
            assert!(list.len() <= 1);
            list.first().map(|word| (word.waits, word.held.ps(), word.handed_over.ps()))
        }
    }

    #[test]
    fn a_handler_waits_in_vain_where_others_come_in_front() {
        let rig = Rig::new();
        let told = |run| rig.contention.in_vain(run).unwrap_or_default();
        rig.at(10, 1, TAKE, true);
        rig.at(20, 2, TAKE, false);
        assert_eq!(told(2), "", "it has not come back");
        rig.at(30, 2, TAKE, false);
        assert_eq!(told(2), "it waits for a word, which no other handler has changed since");
        rig.at(40, 1, GIVE, true);
        rig.at(50, 3, TAKE, true);
        rig.at(60, 2, TAKE, false);
        assert!(told(2).starts_with("it waits for a word, which others keep changing"), "{}", told(2));
        assert_eq!((told(1), told(3)), (String::new(), String::new()));
    }

    #[test]
    fn a_counter_is_retried_where_others_change_it_first() {
        let rig = Rig::new();
        for n in 0..5 {
            // Both load it. The first changes it, and the other retries.
            rig.at(100 * n, 2 * n, LOOK, false);
            rig.at(100 * n + 1, 2 * n + 1, LOOK, false);
            rig.at(100 * n + 10, 2 * n, TAKE, true);
            rig.at(100 * n + 11, 2 * n + 1, TAKE, false);
            rig.at(100 * n + 20, 2 * n + 1, LOOK, false);
            rig.at(100 * n + 30, 2 * n + 1, TAKE, true);
        }
        assert_eq!(rig.held(), None);
        let RetriedWord { word, retried_at, retries, .. } = rig.contention.retried().unwrap();
        assert_eq!((&*word, &*retried_at, retries), ("a word", "pc 0x00000300", 5));
        let rig = Rig::new();
        rig.at(10, 1, TAKE, true);
        rig.at(20, 2, TAKE, true);
        assert_eq!(rig.contention.retried(), None);
    }

    #[test]
    fn a_lock_without_waiters_is_held() {
        let rig = Rig::new();
        for n in 0..10 {
            rig.at(100 * n, n, TAKE, true);
            rig.at(100 * n + 60, n, GIVE, true);
        }
        assert_eq!(rig.held(), Some((0, 600, 0)));
        // A counter that is not given back is no lock.
        rig.at(1000, 11, TAKE, true);
        rig.at(1010, 12, TAKE, true);
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
        // No handler waits: the word is free and not handed over. Yet it was held.
        rig.at(2000, 1, TAKE, true);
        rig.at(2007, 1, GIVE, true);
        assert_eq!(rig.held(), Some((1, 40 + 40 + 7, 10)));
        let word = &rig.contention.list(|_| None)[0];
        // From 1010 to 1050.
        assert_eq!(word.waited, Duration::from_ps(40));
        assert_eq!(
            (&*word.acquired_line, word.released_line.as_deref()),
            ("pc 0x00000100", Some("pc 0x00000200"))
        );
    }

    #[test]
    fn a_handler_that_does_not_retry_has_not_waited() {
        let rig = Rig::new();
        rig.at(1000, 1, TAKE, true);
        rig.at(1010, 2, TAKE, false);
        rig.contention.goes_on(2);
        rig.at(1020, 2, LOOK, false);
        rig.at(1040, 1, GIVE, true);
        assert_eq!(rig.held(), None, "it goes on, so that nobody is held up");
    }

    /// LR, then an SC that fails because of another handler's store. The store is in the way, not the value that LR
    /// found.
    #[test]
    fn a_lost_reservation_waits_for_the_handler_that_took_the_word() {
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

    /// From the load that finds the turn until the turn is passed on.
    #[test]
    fn a_ticket_is_held_and_handed_over() {
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
        // It waits for no handler.
        rig.at(8990, 4, LOOK, false);
        rig.at(9000, 4, GIVE, true);
        assert_eq!(rig.held(), Some((2, 40 + 35 + 35 + 10, 5 + 5)));
    }
}
