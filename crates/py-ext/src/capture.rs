//! The captures of a thread.

use pyo3::prelude::*;
use std::cell::RefCell;
use std::path::PathBuf;

thread_local! {
    /// The active captures. Runs write to the last one.
    static BEGUN: RefCell<Vec<nicety::Capture>> = const { RefCell::new(Vec::new()) };
}

/// A file for the packets of links, in all runs of a thread between its begin and its end.
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

    /// Starts to capture runs of this thread.
    fn begin(&self) {
        BEGUN.with_borrow_mut(|begun| begun.push(self.0.clone()));
    }

    /// Stops to capture. An earlier capture that is still active continues.
    fn end(&self) {
        BEGUN.with_borrow_mut(Vec::pop);
    }

    /// Packets that did not fit the memory.
    fn left_out(&self) -> u64 {
        self.0.left_out()
    }

    /// Packets in all.
    fn packets(&self) -> u64 {
        self.0.packets()
    }
}

/// Returns the capture of runs of this thread, if any.
pub fn current() -> Option<nicety::Capture> {
    BEGUN.with_borrow(|begun| begun.last().cloned())
}
