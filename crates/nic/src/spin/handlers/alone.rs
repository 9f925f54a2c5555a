//! Locks that nobody has had to wait for: at a low and even rate handlers do not meet.
//!
//! A handler *acquires* a word by an atomic operation that changes it, or by a load, as of a ticket that is its turn; it *releases* the
//! word by its next change. Where all changes are such pairs, and no other handler's change came between any, one handler at a time held
//! the word. That needs no knowledge of the code, and is never more than what was seen: the times do not overlap.

use nicety_types::{Duration, Time};

/// An access of a handler's run to a word.
#[derive(Clone, Copy)]
pub(in crate::spin) struct Access {
    pub(in crate::spin) run: u64,
    pub(in crate::spin) pc: u32,
    pub(in crate::spin) now: Time,
    pub(in crate::spin) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::spin) enum Kind {
    /// It changed nothing: a load, or an atomic operation that failed.
    Nothing { atomic: bool },
    /// An atomic operation changed the value.
    Atomic,
    /// A store did.
    Store,
}

impl Kind {
    pub(in crate::spin) const fn of(changed: bool, changing: bool) -> Kind {
        match (changed, changing) {
            (false, atomic) => Kind::Nothing { atomic },
            (true, true) => Kind::Atomic,
            (true, false) => Kind::Store,
        }
    }
}

/// A handler that may hold a word.
#[derive(Clone, Copy, Debug)]
struct Holder {
    run: u64,
    since: Time,
    pc: u32,
    /// Not by a load alone.
    has_changed_it: bool,
}

/// How handlers have used a word, as long as one at a time holds it.
#[derive(Debug, Default)]
pub(in crate::spin) struct Alone {
    holder: Option<Holder>,
    /// Whether there has been an access before. A word may become known by the store that releases it.
    is_known: bool,
    /// A change was no part of such a pair.
    otherwise: bool,
    held: Duration,
    /// Where it was acquired and released last.
    places: Option<(u32, u32)>,
}

impl Alone {
    pub(in crate::spin) fn see(&mut self, Access { run, pc, now, kind }: Access) {
        let is_known = std::mem::replace(&mut self.is_known, true);
        let own = self.holder.filter(|holder| holder.run == run);
        let acquired = |has_changed_it| Some(Holder { run, since: now, pc, has_changed_it });
        match (kind, own) {
            (Kind::Nothing { atomic: true }, _) => {}
            (Kind::Nothing { atomic: false }, _) => {
                // Others may look at what somebody holds.
                if !self.holder.is_some_and(|holder| holder.has_changed_it) {
                    self.holder = acquired(false);
                }
            }
            // A load linked, and its store conditional.
            (Kind::Atomic, Some(Holder { has_changed_it: false, .. })) => self.holder = acquired(true),
            (_, Some(holder)) => {
                self.held += now.since(holder.since);
                self.places = Some((holder.pc, pc));
                self.holder = None;
            }
            (Kind::Store, None) => self.otherwise |= is_known,
            (Kind::Atomic, None) => {
                self.otherwise |= self.holder.is_some_and(|holder| holder.has_changed_it);
                self.holder = acquired(true);
            }
        }
    }

    /// For how long it was held in all, where it was acquired, and where released; none if it was used otherwise.
    pub(in crate::spin) fn held(&self) -> Option<(Duration, (u32, u32))> {
        Some((self.held, self.places.filter(|_| !self.otherwise)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Kind = Kind::Nothing { atomic: false };
    const FAILS: Kind = Kind::Nothing { atomic: true };

    /// Picoseconds held, and the places, after accesses by time, run, place and kind.
    fn held(accesses: &[(u64, u64, u32, Kind)]) -> Option<(u64, (u32, u32))> {
        let mut alone = Alone::default();
        for &(ps, run, pc, kind) in accesses {
            alone.see(Access { run, pc, now: Time::from_ps(ps), kind });
        }
        alone.held().map(|(held, places)| (held.ps(), places))
    }

    #[test]
    fn a_lock_is_acquired_and_released() {
        let swap = [(100, 1, 10, Kind::Atomic), (160, 1, 20, Kind::Store)];
        assert_eq!(held(&swap), Some((60, (10, 20))));
        assert_eq!(held(&swap[..1]), None);
        let again = [(300, 2, 10, Kind::Atomic), (310, 2, 20, Kind::Atomic)];
        assert_eq!(held(&[swap, again].concat()), Some((70, (10, 20))));
        // Another one that does not try again, and one that looks.
        let between = [(120, 2, 10, FAILS), (130, 3, 30, LOAD)];
        assert_eq!(held(&[&swap[..1], &between, &swap[1..]].concat()), Some((60, (10, 20))));
        // A load linked, its store conditional, and a store.
        let linked = [(100, 1, 10, LOAD), (101, 1, 11, Kind::Atomic), (150, 1, 20, Kind::Store)];
        assert_eq!(held(&linked), Some((49, (11, 20))));
    }

    #[test]
    fn the_turn_of_a_ticket_is_loaded_and_stored() {
        let turn = [(100, 1, 10, LOAD), (150, 1, 20, Kind::Store)];
        assert_eq!(held(&turn), Some((50, (10, 20))));
        let next = [(200, 2, 10, LOAD), (230, 2, 20, Kind::Store)];
        assert_eq!(held(&[turn, next].concat()), Some((80, (10, 20))));
        assert_eq!(held(&[&turn[1..], &next].concat()), Some((30, (10, 20))));
        assert_eq!(held(&[&turn[..], &next[1..]].concat()), None);
        // Two that loaded the same turn are none that hold it one at a time.
        let both =
            [(100, 1, 10, LOAD), (110, 2, 10, LOAD), (150, 1, 20, Kind::Store), (160, 2, 20, Kind::Store)];
        assert_eq!(held(&both), None);
    }

    #[test]
    fn counters_and_flags_are_no_locks() {
        let counted = [(100, 1, 10, Kind::Atomic), (110, 2, 10, Kind::Atomic), (120, 3, 10, Kind::Atomic)];
        assert_eq!(held(&counted), None);
        // Each handler counts up and down again, and they overlap.
        let inside = [(100, 1, 10, Kind::Atomic), (110, 2, 10, Kind::Atomic), (120, 1, 20, Kind::Atomic)];
        assert_eq!(held(&[&inside[..], &[(130, 2, 20, Kind::Atomic)]].concat()), None);
        // One sets it, and another clears it.
        assert_eq!(held(&[(100, 1, 10, Kind::Atomic), (110, 2, 20, Kind::Store)]), None);
        assert_eq!(held(&[(100, 1, 10, LOAD), (110, 2, 10, LOAD)]), None);
    }
}
