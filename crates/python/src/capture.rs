//! The captures of a thread.

use pyo3::prelude::*;
use std::cell::RefCell;
use std::path::PathBuf;

thread_local! {
    /// The captures that have begun and not ended; the last one is that of runs.
    static BEGUN: RefCell<Vec<nicety::Capture>> = const { RefCell::new(Vec::new()) };
}

/// A file for the packets of links, in all runs of a thread from its beginning to its end.
#[pyclass(frozen)]
pub struct Capture(nicety::Capture);

#[pymethods]
impl Capture {
    #[new]
    #[pyo3(signature = (path, memory=None))]
    fn new(path: PathBuf, memory: Option<u64>) -> Self {
        let capture = nicety::Capture::to(path);
        Capture(match memory {
            Some(memory) => capture.within(memory),
            None => capture,
        })
    }

    /// Runs of this thread are captured from now on.
    fn begin(&self) {
        BEGUN.with_borrow_mut(|begun| begun.push(self.0.clone()));
    }

    /// No longer, but those of a capture that had begun before.
    fn end(&self) {
        BEGUN.with_borrow_mut(Vec::pop);
    }

    /// How many packets did not fit the memory.
    fn left_out(&self) -> u64 {
        self.0.left_out()
    }

    /// How many packets there were.
    fn packets(&self) -> u64 {
        self.0.packets()
    }
}

/// The capture of runs of this thread, if there is one.
pub fn current() -> Option<nicety::Capture> {
    BEGUN.with_borrow(|begun| begun.last().cloned())
}
