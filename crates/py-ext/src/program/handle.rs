//! The state of a host that Python objects may use in any OS thread.

use crate::errors::InputError;
use pyo3::prelude::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The part of a host that Python objects refer to. Its mutexes are locked only while Python's lock is held, so they
/// never block.
pub struct Handle {
    pub rank: u32,
    pub ranks: u32,
    /// The text of the error for a use before the run.
    beginning: String,
    begun: AtomicBool,
    now_ps: AtomicU64,
    /// Error texts for calls that were never awaited.
    forgotten: Mutex<Vec<String>>,
    /// Whether `forgotten` has errors.
    forgets: AtomicBool,
    /// The addresses of coroutines that belong to a `gather` and have not ended.
    gathered: Mutex<HashSet<usize>>,
}

impl Handle {
    /// Returns a host before its run. `beginning` is the text of the error for a use before the run.
    pub fn new(rank: u32, ranks: u32, beginning: String) -> Handle {
        Handle {
            rank,
            ranks,
            beginning,
            begun: AtomicBool::new(false),
            now_ps: AtomicU64::new(0),
            forgotten: Mutex::default(),
            forgets: AtomicBool::new(false),
            gathered: Mutex::default(),
        }
    }

    /// Returns the error for a use outside the host's program.
    pub fn outside(&self) -> PyErr {
        InputError::new_err(if self.begun.load(Ordering::Relaxed) {
            format!(
                "<Host, rank {} of {}> is used outside its program, which does not run now",
                self.rank, self.ranks
            )
        } else {
            self.beginning.clone()
        })
    }

    /// Records that the run has begun.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    pub fn set_now(&self, ps: u64) {
        self.now_ps.store(ps, Ordering::Relaxed);
    }

    /// Returns the current virtual time in picoseconds.
    pub fn now_ps(&self) -> u64 {
        self.now_ps.load(Ordering::Relaxed)
    }

    /// Returns the current virtual time in nanoseconds, as Python prints the number.
    pub fn now_ns(&self) -> String {
        format!("{:?}", self.now_ps() as f64 / 1000.0)
    }

    /// Records an error for a call that was dropped and never awaited.
    pub fn forget(&self, text: String) {
        lock(&self.forgotten).push(text);
        self.forgets.store(true, Ordering::Relaxed);
    }

    /// Removes and returns the first recorded error.
    pub fn forgotten(&self) -> Option<String> {
        if !self.forgets.load(Ordering::Relaxed) {
            return None;
        }
        let mut forgotten = lock(&self.forgotten);
        let first = (!forgotten.is_empty()).then(|| forgotten.remove(0));
        self.forgets.store(!forgotten.is_empty(), Ordering::Relaxed);
        first
    }

    /// Marks a coroutine as belonging to a `gather`. Returns false if it already belongs to one.
    pub fn take(&self, coroutine: &Bound<'_, PyAny>) -> bool {
        lock(&self.gathered).insert(coroutine.as_ptr() as usize)
    }

    /// Removes the mark of a coroutine that has ended.
    pub fn give_back(&self, coroutine: &Py<PyAny>) {
        lock(&self.gathered).remove(&(coroutine.as_ptr() as usize));
    }
}

/// Locks a mutex. It cannot be poisoned, because no holder panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
