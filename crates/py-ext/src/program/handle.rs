//! A host's side of a run, shared by its program's objects in any thread.

use crate::errors::InputError;
use pyo3::prelude::*;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// A host for its program. Its locks are taken only with Python's lock held, so they never block.
pub struct Handle {
    pub rank: u32,
    pub ranks: u32,
    /// The error of a use before the run.
    beginning: String,
    begun: AtomicBool,
    now_ps: AtomicU64,
    /// Errors for calls that were never awaited.
    forgotten: Mutex<Vec<String>>,
    /// Whether `forgotten` has errors.
    forgets: AtomicBool,
    /// Coroutines of a `gather` that have not ended, by identity.
    gathered: Mutex<HashSet<usize>>,
}

impl Handle {
    /// A host before its run. `beginning` is the error of a use before that.
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

    /// The error of a use outside its program.
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

    /// Begins the run.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    pub fn set_now(&self, ps: u64) {
        self.now_ps.store(ps, Ordering::Relaxed);
    }

    /// Returns the current instant in picoseconds.
    pub fn now_ps(&self) -> u64 {
        self.now_ps.load(Ordering::Relaxed)
    }

    /// Returns the current instant in nanoseconds, as Python prints it.
    pub fn now_ns(&self) -> String {
        format!("{:?}", self.now_ps() as f64 / 1000.0)
    }

    /// Records a call that was dropped without an await.
    pub fn forget(&self, text: String) {
        lock(&self.forgotten).push(text);
        self.forgets.store(true, Ordering::Relaxed);
    }

    /// Takes the first recorded call.
    pub fn forgotten(&self) -> Option<String> {
        if !self.forgets.load(Ordering::Relaxed) {
            return None;
        }
        let mut forgotten = lock(&self.forgotten);
        let first = (!forgotten.is_empty()).then(|| forgotten.remove(0));
        self.forgets.store(!forgotten.is_empty(), Ordering::Relaxed);
        first
    }

    /// Marks a coroutine as part of a `gather`. Returns whether it was unmarked.
    pub fn take(&self, coroutine: &Bound<'_, PyAny>) -> bool {
        lock(&self.gathered).insert(coroutine.as_ptr() as usize)
    }

    /// Unmarks a coroutine that has ended.
    pub fn give_back(&self, coroutine: &Py<PyAny>) {
        lock(&self.gathered).remove(&(coroutine.as_ptr() as usize));
    }
}

/// Locks a mutex; no holder panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
