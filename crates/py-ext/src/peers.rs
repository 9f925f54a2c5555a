//! The processes of one command.

use nicety::{Error, Exchange};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::cell::RefCell;

thread_local! {
    /// The processes among which the runs of this thread are divided.
    static BEGUN: RefCell<Option<nicety::Peers>> = const { RefCell::new(None) };
}

/// One process of a command, with its connection to the other processes. `exchange` is a Python function. Its argument
/// is a list with bytes for each process. Its result is a list with the bytes that each process has sent to this one.
#[pyclass(frozen)]
pub struct Peers(nicety::Peers);

/// A Python function that exchanges bytes.
struct Called(Py<PyAny>);

impl Exchange for Called {
    fn exchange(&self, bytes: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Error> {
        Python::attach(|py| {
            let given = PyList::new(py, bytes.iter().map(|bytes| PyBytes::new(py, bytes)))?;
            let taken = self.0.call1(py, (given,))?;
            let taken: Vec<Bound<'_, PyBytes>> = taken.extract(py)?;
            Ok(taken.iter().map(|bytes| bytes.as_bytes().to_vec()).collect())
        })
        .map_err(|error: PyErr| {
            match Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
                true => Error::Interrupted,
                false => Error::Program(format!("the other processes are out of reach: {error}")),
            }
        })
    }
}

#[pymethods]
impl Peers {
    #[new]
    fn new(number: usize, count: usize, exchange: Py<PyAny>) -> Self {
        Peers(nicety::Peers::new(number, count, Box::new(Called(exchange))))
    }

    /// Starts to divide the runs of this thread among the processes.
    fn begin(&self) {
        BEGUN.set(Some(self.0.clone()));
    }

    /// Reports that this process leaves with this status. Returns the statuses of the round in which the first process
    /// left. The statuses are in the order of processes. A process that has not left has the status None.
    fn leave(&self, status: u8) -> PyResult<nicety::Statuses> {
        BEGUN.set(None);
        crate::errors::guarded(|| self.0.leave(status))
    }
}

/// Returns the processes among which the runs of this thread are divided, if any.
pub fn current() -> Option<nicety::Peers> {
    BEGUN.with_borrow(Clone::clone)
}
