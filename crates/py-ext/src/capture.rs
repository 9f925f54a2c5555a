//! The captures of a thread.

use pyo3::prelude::*;
use std::cell::RefCell;
use std::path::PathBuf;

thread_local! {
    /// The active captures of this thread. Runs write to the last of them.
    static BEGUN: RefCell<Vec<nicety::Capture>> = const { RefCell::new(Vec::new()) };
}

/// A file for the packets of links. It gets the packets of all runs in this thread between `begin` and `end`.
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

    /// Starts to capture the runs of this thread.
    fn begin(&self) {
        BEGUN.with_borrow_mut(|begun| begun.push(self.0.clone()));
    }

    /// Stops this capture. An earlier capture that is still active continues.
    fn end(&self) {
        BEGUN.with_borrow_mut(Vec::pop);
    }

    /// The number of packets that did not fit the memory.
    fn left_out(&self) -> u64 {
        self.0.left_out()
    }

    /// The number of packets in all runs.
    fn packets(&self) -> u64 {
        self.0.packets()
    }
}

/// Returns the active capture of this thread, if any.
pub fn current() -> Option<nicety::Capture> {
    BEGUN.with_borrow(|begun| begun.last().cloned())
}
