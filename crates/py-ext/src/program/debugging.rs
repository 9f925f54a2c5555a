//! A debugging session of a program of hosts, over several runs.

use crate::calls::text;
use crate::errors::raised;
use nicety_line_rate::ProcessSession;
use pyo3::prelude::*;
use std::rc::Rc;

/// A session with the processes of one program, on one card.
#[pyclass(frozen, unsendable)]
pub struct DebugSession(pub ProcessSession);

#[pymethods]
impl DebugSession {
    /// Listens to a port of the loopback interface; 0 for any free one.
    #[new]
    fn new(port: u16) -> PyResult<DebugSession> {
        // The exception of a signal is that of the run, or of the wait for a debugger.
        let interrupted = || Python::attach(|py| py.check_signals().is_err());
        ProcessSession::open(port, Rc::new(interrupted)).map(DebugSession).map_err(|error| raised(&error))
    }

    /// The port.
    const fn port(&self) -> u16 {
        self.0.port()
    }

    /// Waits for a debugger, after the first run.
    fn accept(&self) -> PyResult<()> {
        self.0.accept().map_err(|error| raised(&error))
    }

    /// Whether the program must be run again.
    fn repeats(&self) -> bool {
        self.0.repeats()
    }

    /// Whether the session has abandoned the last run.
    fn left(&self) -> bool {
        self.0.left()
    }

    /// The name of the first process's function.
    fn first(&self) -> Option<String> {
        self.0.first()
    }

    /// Reports the end of the last run to the debugger. Returns the end of the session as JSON.
    fn finish(&self, failed: bool) -> String {
        text(&self.0.finish(failed))
    }
}
