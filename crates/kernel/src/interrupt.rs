//! [`Interrupt`]: ends a run from outside.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Checked every few events: a flag that another thread sets, or any function. Cheap to clone; a clone is the
/// same one.
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// An interrupt that calls a function, in the thread of the run and between two events of it. It is
    /// called often, so it must be quick most of the time.
    pub fn new(asked: impl Fn() -> bool + Send + Sync + 'static) -> Interrupt {
        Interrupt(Arc::new(asked))
    }

    /// Whether the run shall end.
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
