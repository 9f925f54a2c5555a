//! Locks: words that runs take and release by atomic operations.
//!
//! No instruction says that a word is a lock. Bits of a word are one if a run has set them from 0 by an atomic operation, and has
//! cleared them again. Bits are also one if a run has tried that in vain several times in a row. Findings wait for this until the end.
//! An operation covers the bits that it may change: all of a word, those of a mask, or those of a byte.
//!
//! A word counts its holders if a compare and swap changes it from one value above 0 to another. A lock of readers and a writer is
//! such a word. No single run holds it, so that it has no findings.

use crate::calls::Site;
use crate::finding::Defect;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Tries in vain in a row that make a word a lock.
const SPINS: u32 = 3;

/// Most words that a run may hold as locks for an order among them.
const MOST_HELD: usize = 16;

/// A run at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub run: u32,
    pub site: Site,
}

/// An atomic operation on a word, or a store of zero.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub address: u32,
    pub old: u64,
    pub new: u64,
    /// The bits that the operation may change.
    pub cover: u64,
    pub at: At,
    /// Whether the run waits until it may set the bits.
    pub waits: bool,
    /// Whether the source names it an initialisation.
    pub initial: bool,
}

/// A possible finding, which counts if its words are locks.
#[derive(Clone, Debug)]
pub(crate) struct Suspect {
    pub defect: Defect,
    pub words: Vec<u32>,
    /// The bits of the words.
    pub bits: u64,
    pub at: At,
    pub other: Option<At>,
}

/// Bits of a word that a run has set.
#[derive(Clone, Copy)]
struct Taken {
    address: u32,
    bits: u64,
    /// Whether other bits of the word were set, as in a map of slots. Alone, these bits then are no lock.
    beside: bool,
    at: At,
}

#[derive(Default)]
struct Word {
    holder: Option<Taken>,
    /// The bits that are locks.
    locks: u64,
    /// Whether it counts its holders.
    counts: bool,
}

/// An order of two locks.
struct Order {
    /// The place of the second one.
    second: At,
    /// All locks held at each second one.
    under: BTreeSet<u32>,
    /// Whether runs wait for the second one. A run that only tries cannot be in a deadlock by it.
    waits: bool,
}

/// The tries of a run in vain.
#[derive(Clone, Copy, Default)]
struct Spin {
    address: u32,
    bits: u64,
    tries: u32,
}

/// The locks of a program, and those that each run holds.
#[derive(Default)]
pub(crate) struct Locks {
    words: FxHashMap<u32, Word>,
    held: FxHashMap<u32, Vec<Taken>>,
    once_held: FxHashSet<(u32, u32)>,
    spins: FxHashMap<u32, Spin>,
    /// Instructions that have tried in vain again and again.
    waiters: FxHashSet<u32>,
    /// Instructions that take locks.
    takers: FxHashSet<u32>,
    /// Orders of two locks.
    orders: BTreeMap<(u32, u32), Order>,
    suspects: Vec<Suspect>,
}

impl Locks {
    /// Whether an atomic operation has used the word as a lock.
    #[inline]
    pub fn knows(&self, address: u32) -> bool {
        !self.words.is_empty() && self.words.contains_key(&address)
    }

    /// Takes an atomic operation that may take or release a lock. Returns a double lock.
    pub fn change(&mut self, change: Change) -> Option<Suspect> {
        let Change { address, cover, at, .. } = change;
        let (old, new) = (change.old & cover, change.new & cover);
        let beside = change.old & !cover != 0;
        let taken = Taken { address, bits: new, beside, at };
        if old == 0 && new != 0 {
            self.taken(taken, change.waits);
        } else if new == 0 {
            self.released(change);
        } else if old == new {
            return self.in_vain(taken, change.waits);
        }
        None
    }

    /// Takes an addition, which may release a lock that the run holds.
    pub fn add(&mut self, change: Change) {
        let Change { address, old, new, at, .. } = change;
        let cleared = if new == 0 { u64::MAX } else { old & !new };
        let held = self.held.get(&at.run).into_iter().flatten();
        if held.clone().any(|taken| taken.address == address && taken.bits & !cleared == 0) {
            self.released(Change { new: 0, cover: cleared, ..change });
        }
    }

    /// Takes a compare and swap from one value above 0 to another: the word counts its holders.
    pub fn count(&mut self, address: u32) {
        self.words.entry(address).or_default().counts = true;
    }

    fn taken(&mut self, taken: Taken, waits: bool) {
        let Taken { address, bits, at, .. } = taken;
        self.order(address, at, waits);
        self.spins.remove(&at.run);
        let word = self.words.entry(address).or_default();
        // Bits beside a lock that another run holds are not the lock.
        if word.holder.is_none_or(|holder| holder.at.run == at.run || holder.bits & bits != 0) {
            word.holder = Some(taken);
        }
        self.held.entry(at.run).or_default().push(taken);
        self.once_held.insert((at.run, address));
    }

    /// Notes that a run takes a lock, or tries to, while it holds others.
    fn order(&mut self, address: u32, at: At, waits: bool) {
        // Bits that a run only sets, as in a sketch, are no locks, and there may be thousands of them.
        let Some(held) = self.held.get(&at.run).filter(|held| held.len() <= MOST_HELD) else { return };
        let all: BTreeSet<u32> = held.iter().map(|held| held.address).collect();
        for held in held.iter().filter(|held| held.address != address) {
            let order = || Order { second: at, under: all.clone(), waits };
            let known = self.orders.entry((held.address, address)).or_insert_with(order);
            match (known.waits, waits) {
                (false, true) => *known = order(),
                (true, false) => {}
                _ => known.under.retain(|held| all.contains(held)),
            }
        }
    }

    fn in_vain(&mut self, Taken { address, bits, at, .. }: Taken, waits: bool) -> Option<Suspect> {
        let spin = self.spins.entry(at.run).or_default();
        if (spin.address, spin.bits) != (address, bits) {
            *spin = Spin { address, bits, tries: 0 };
            self.order(address, at, waits);
        }
        let spin = self.spins.get_mut(&at.run).expect("just entered");
        spin.tries += 1;
        if spin.tries == 2 {
            self.waiters.insert(at.site.pc);
        }
        if spin.tries != SPINS {
            return None;
        }
        let word = self.words.entry(address).or_default();
        word.locks |= bits;
        self.takers.insert(at.site.pc);
        let own = word.holder.filter(|holder| holder.at.run == at.run && holder.bits & bits != 0)?;
        Some(Suspect { defect: Defect::DoubleLock, words: vec![address], bits, at, other: Some(own.at) })
    }

    fn released(&mut self, Change { address, old, cover, at, initial, .. }: Change) {
        let word = self.words.entry(address).or_default();
        let holder = word.holder.take_if(|holder| holder.bits & !cover == 0);
        let held = self.held.entry(at.run).or_default();
        let is_own = |taken: &Taken| taken.address == address && taken.bits & !cover == 0;
        if held.iter().any(is_own) {
            for taken in held.extract_if(.., |taken| is_own(taken)).filter(|taken| !taken.beside) {
                word.locks |= taken.bits;
                self.takers.insert(taken.at.site.pc);
            }
            return;
        }
        if initial {
            return;
        }
        // The holder still releases it later, which shows that the word is a lock.
        let others = holder.filter(|_| old & cover != 0).map(|holder| holder.at);
        self.suspects.push(Suspect {
            defect: Defect::UnlockWithoutLock,
            words: vec![address],
            bits: cover,
            at,
            other: others,
        });
    }

    /// Ends a run. A run that was stopped keeps its locks, but that is no mistake of its own.
    pub fn end(&mut self, run: u32, returned: bool) {
        self.spins.remove(&run);
        for Taken { address, bits, at, .. } in self.held.remove(&run).unwrap_or_default() {
            if returned {
                let words = vec![address];
                self.suspects.push(Suspect { defect: Defect::LockKept, words, bits, at, other: None });
            }
        }
    }

    /// Whether a run has held a lock at this word.
    pub fn has_held(&self, run: u32, address: u32) -> bool {
        self.once_held.contains(&(run, address))
    }

    /// Returns the findings, now that all locks are known.
    pub fn findings(&mut self) -> Vec<Suspect> {
        let suspects = std::mem::take(&mut self.suspects);
        let locks = |address: &u32| self.words.get(address).map_or(0, |word| word.locks);
        let counts = |address: &u32| self.words.get(address).is_some_and(|word| word.counts);
        let of_taker = |suspect: &Suspect| {
            let own = suspect.words.iter().all(|word| locks(word) == 0);
            suspect.defect == Defect::LockKept && own && self.takers.contains(&suspect.at.site.pc)
        };
        let mut found: Vec<Suspect> = suspects
            .into_iter()
            .filter(|suspect| {
                suspect.words.iter().all(|word| locks(word) & suspect.bits != 0) || of_taker(suspect)
            })
            .filter(|suspect| !suspect.words.iter().any(counts))
            .collect();
        found.extend(self.cycles());
        found
    }

    /// Returns the cycles of orders among locks, without those under a common lock.
    fn cycles(&self) -> Vec<Suspect> {
        let is_lock = |address: &u32| self.words.get(address).is_some_and(|word| word.locks != 0);
        let counts = |((first, second), order): &(&(u32, u32), &Order)| {
            is_lock(first) && is_lock(second) && self.waits(order)
        };
        let edges: Vec<_> = self.orders.iter().filter(counts).collect();
        let mut found = Vec::new();
        for ((first, second), Order { second: at, under, .. }) in &edges {
            if first > second {
                continue;
            }
            if let Some((other, gates)) = self.path(*second, *first)
                && !under.iter().any(|gate| gate != first && gates.contains(gate))
            {
                let words = vec![*first, *second];
                let bits = u64::MAX;
                found.push(Suspect { defect: Defect::LockOrder, words, bits, at: *at, other: Some(other) });
            }
        }
        found
    }

    /// Whether runs wait for the second lock of an order.
    fn waits(&self, order: &Order) -> bool {
        order.waits || self.waiters.contains(&order.second.site.pc)
    }

    /// Finds a path of orders from one lock to another. Returns the place of its last step, and the locks held there.
    fn path(&self, from: u32, to: u32) -> Option<(At, BTreeSet<u32>)> {
        let mut seen = BTreeSet::from([from]);
        let mut next = vec![from];
        while let Some(lock) = next.pop() {
            let orders = self.orders.range((lock, 0)..=(lock, u32::MAX));
            for ((_, second), Order { second: at, under, .. }) in
                orders.filter(|(_, order)| self.waits(order))
            {
                if *second == to {
                    let gates = under.iter().copied().filter(|gate| *gate != lock).collect();
                    return Some((*at, gates));
                }
                if seen.insert(*second) {
                    next.push(*second);
                }
            }
        }
        None
    }
}
