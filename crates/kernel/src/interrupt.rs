//! [`Interrupt`]: ends a run from outside.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that another thread sets, or any function. The run checks it every few events. A clone is cheap, and is another
/// handle to the same interrupt.
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// Returns an interrupt that calls a function, in the thread of the run and between two events. The run calls the
    /// function often, so it must usually return quickly.
    pub fn new(asked: impl Fn() -> bool + Send + Sync + 'static) -> Interrupt {
        Interrupt(Arc::new(asked))
    }

    /// Whether the run must end.
    pub fn is_set(&self) -> bool {
        (self.0)()
    }
}

impl From<Arc<AtomicBool>> for Interrupt {
    /// The run ends when the flag is set.
    fn from(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt::new(move || flag.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}
