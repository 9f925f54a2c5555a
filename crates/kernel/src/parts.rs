//! The parts of a simulation in several threads or processes. Each part runs a shard of the nodes. An event that
//! concerns a node of another part is sent to that part as a message, between two windows of virtual time.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{fmt, hint, thread};

/// A part's connection to the other parts. All parts meet at the end of every window, and again at the end of the run.
/// A part leaves by dropping its connection. No later meeting takes place.
pub trait Parts<T> {
    /// The number of this part, and the number of parts.
    fn place(&self) -> (usize, usize);

    /// Exchanges messages with all other parts, and waits until all parts have arrived. Sends `outgoing[i]` to part `i`
    /// and empties the list. Sends `word` to all parts. Adds the messages for this part to `incoming`, in any order.
    /// Returns the word of each part, in the order of the part numbers, or `None` if a part has left.
    fn meet(&mut self, word: u64, outgoing: &mut [Vec<T>], incoming: &mut Vec<T>) -> Option<&[u64]>;
}

/// A waiting part first spins for `LOOKS` checks, then lets other threads run before each of `YIELDS` checks, and then
/// sleeps. If every part has a core, the other parts usually arrive while it spins.
const LOOKS: u32 = 256;
const YIELDS: u32 = 8;

/// The memory that threads share.
struct Shared<M> {
    parts: usize,
    /// Successive meetings use these two in turn. Two are enough, since a part is at most one meeting ahead of another.
    rounds: [Round<M>; 2],
    /// Total number of arrivals of parts at meetings.
    come: AtomicU64,
    /// Whether a part has left.
    left: AtomicBool,
    asleep: AtomicUsize,
    lock: Mutex<()>,
    bell: Condvar,
}

struct Round<M> {
    words: Vec<AtomicU64>,
    /// The messages from each part to each part. The index is `from * parts + to`.
    mail: Vec<Mutex<Vec<M>>>,
}

/// The parts in threads of one process.
pub struct Threads<M> {
    shared: Arc<Shared<M>>,
    number: usize,
    /// Number of meetings at which this part has arrived.
    meetings: u64,
    /// The words of all parts at the last meeting.
    words: Vec<u64>,
}

impl<M: Send> Threads<M> {
    /// Returns `parts` connected parts, one for each thread.
    pub fn connected(parts: usize) -> Vec<Threads<M>> {
        let round = || Round {
            words: (0..parts).map(|_| AtomicU64::new(0)).collect(),
            mail: (0..parts * parts).map(|_| Mutex::default()).collect(),
        };
        let shared = Arc::new(Shared {
            parts,
            rounds: [round(), round()],
            come: AtomicU64::new(0),
            left: AtomicBool::new(false),
            asleep: AtomicUsize::new(0),
            lock: Mutex::default(),
            bell: Condvar::new(),
        });
        (0..parts)
            .map(|number| Threads { shared: shared.clone(), number, meetings: 0, words: vec![0; parts] })
            .collect()
    }
}

impl<M> Shared<M> {
    /// Waits until `target` arrivals have been counted, and returns true. Returns false if a part leaves first.
    fn wait(&self, target: u64) -> bool {
        let over = || self.come.load(Ordering::SeqCst) >= target || self.left.load(Ordering::SeqCst);
        for look in 0..LOOKS + YIELDS {
            if over() {
                break;
            }
            if look < LOOKS { hint::spin_loop() } else { thread::yield_now() }
        }
        if !over() {
            let mut guard = held(&self.lock);
            self.asleep.fetch_add(1, Ordering::SeqCst);
            while !over() {
                guard = self.bell.wait(guard).unwrap_or_else(PoisonError::into_inner);
            }
            self.asleep.fetch_sub(1, Ordering::SeqCst);
        }
        self.come.load(Ordering::SeqCst) >= target
    }

    fn ring(&self) {
        // A part increments `asleep` before its last check and its sleep. So no sleeping part misses the bell.
        if self.asleep.load(Ordering::SeqCst) > 0 {
            let _guard = held(&self.lock);
            self.bell.notify_all();
        }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M: Send> Parts<M> for Threads<M> {
    fn place(&self) -> (usize, usize) {
        (self.number, self.shared.parts)
    }

    fn meet(&mut self, word: u64, outgoing: &mut [Vec<M>], incoming: &mut Vec<M>) -> Option<&[u64]> {
        let shared = &*self.shared;
        let parts = shared.parts;
        let round = &shared.rounds[(self.meetings % 2) as usize];
        for (to, mail) in outgoing.iter_mut().enumerate().filter(|(_, mail)| !mail.is_empty()) {
            std::mem::swap(&mut *held(&round.mail[self.number * parts + to]), mail);
        }
        round.words[self.number].store(word, Ordering::Relaxed);
        self.meetings += 1;
        let target = self.meetings * parts as u64;
        if shared.come.fetch_add(1, Ordering::SeqCst) + 1 >= target {
            shared.ring();
        } else if !shared.wait(target) {
            return None;
        }
        for from in (0..parts).filter(|from| *from != self.number) {
            incoming.append(&mut held(&round.mail[from * parts + self.number]));
        }
        for (own, word) in self.words.iter_mut().zip(&round.words) {
            *own = word.load(Ordering::Relaxed);
        }
        Some(&self.words)
    }
}

impl<M> Drop for Threads<M> {
    fn drop(&mut self) {
        self.shared.left.store(true, Ordering::SeqCst);
        self.shared.ring();
    }
}

impl<M> fmt::Debug for Threads<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threads({} of {})", self.number, self.shared.parts)
    }
}
